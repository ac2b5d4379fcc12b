/** Planted bugs in queues, from the worklist that lists groups to the handlers' transactions. */
import type { Mutant } from './mutant.ts'

export const queueMutants: readonly Mutant[] = [
  {
    id: 'G10',
    title: 'what a handler does, and that its messages are done, go in two transactions',
    edits: [
      {
        file: 'src/queues/handler.ts',
        find: '        for (const { key } of batch.messages) transaction.delete(key)\n      })\n',
        replace:
          '      })\n' +
          '      await this.#transact(group, async (transaction) => {\n' +
          '        for (const { key } of asBatch(taken)?.messages ?? []) transaction.delete(key)\n' +
          '      })\n',
      },
    ],
  },
  {
    id: 'Q01',
    title: 'a group forgets what it has received of a sender',
    edits: [
      {
        file: 'src/queues/receive.ts',
        find: '    transaction.put(key, encodeHighest(highest, sender))\n',
        replace: '',
      },
    ],
  },
  {
    id: 'Q02',
    title: 'messages leave the outbox before they are delivered',
    edits: [
      {
        file: 'src/queues/delivery.ts',
        find: '    const done: Uint8Array[] = []\n',
        replace:
          '    const done: Uint8Array[] = []\n' +
          '    if (messages.length > 0) {\n' +
          '      const keys = messages.map(({ key }) => key)\n' +
          '      await this.#delete(sender, keys)\n' +
          '    }\n',
      },
    ],
  },
  {
    id: 'Q03',
    title: 'a message that failed does not hold up those behind it',
    edits: [
      {
        file: 'src/queues/take.ts',
        find: '        this.#heldUp.add(sender)\n',
        replace: '',
      },
    ],
  },
  {
    id: 'Q04',
    title: 'messages that are taken do not count as read',
    edits: [
      {
        file: 'src/queues/take.ts',
        find: '  transaction.relyOn(messages.map(({ key }) => key))\n',
        replace: '',
      },
    ],
  },
  {
    id: 'Q05',
    title: 'what could not be delivered to a group does not hold up what is behind it',
    edits: [
      {
        file: 'src/queues/delivery.ts',
        find: '    const work = [...byReceiver].filter(([receiver]) => !failed.has(receiver)).values()\n',
        replace: '    const work = [...byReceiver].values()\n',
      },
    ],
  },
  {
    id: 'Q06',
    title: 'a dead letter that is brought back stays among the dead',
    edits: [
      {
        file: 'src/queues/dead-letters.ts',
        find: '      transaction.delete(row.key)\n',
        replace: '',
      },
    ],
  },
  {
    id: 'Q07',
    title: 'a message that fails in a batch is given up with all of the batch',
    edits: [
      {
        file: 'src/queues/handler.ts',
        find: '    if (batch.messages.length === 1) await this.#fail(group, batch.messages, failure.error)\n',
        replace:
          '    if (batch.messages.length >= 1) {\n' +
          '      for (const one of batch.messages) await this.#fail(group, [one], failure.error)\n' +
          '    }\n',
      },
    ],
  },
  {
    id: 'Q08',
    title: 'which groups have something on their worklist is known in memory only',
    edits: [
      {
        file: 'src/store/worklist-index.ts',
        find: '        yield { key, value: encodeStored(key, position, nothing) }\n',
        replace: '',
      },
    ],
  },
  {
    id: 'Q09',
    title: 'a group that was looked at in vain is no longer listed for what came since',
    edits: [
      {
        file: 'src/store/worklist-index.ts',
        find: '    this.#empty.get(topic)?.delete(group)\n',
        replace: '',
      },
      {
        file: 'src/store/worklist-index.ts',
        find: '    if (pending <= position && !isFull) set(this.#empty, text, group, position)\n',
        replace:
          '    if (pending >= 0 && !isFull) set(this.#empty, text, group, position + 1_000)\n',
      },
    ],
  },
  {
    id: 'Q10',
    title: 'a group is no longer listed while its last rows are still on disk',
    edits: [
      {
        file: 'src/store/worklist-index.ts',
        find: '        if ((taken.get(group) ?? rest) < position) continue\n',
        replace: '        if (rest < -1) continue\n',
      },
    ],
  },
  {
    id: 'Q11',
    title: 'a topic that nothing was stored of stays so, whatever is listed under it',
    edits: [
      {
        file: 'src/store/worklist-index.ts',
        find: '    this.#bare.delete(topic)\n',
        replace: '',
      },
    ],
  },
  {
    id: 'Q12',
    title: 'a dead letter that is brought back keeps its failures',
    edits: [
      {
        file: 'src/queues/dead-letters.ts',
        find: '{ ...message, failures: 0, redriven: message.redriven + 1 }',
        replace: '{ ...message, redriven: message.redriven + 1 }',
      },
    ],
  },
  {
    id: 'Q13',
    title: 'a message to the own group is not delayed',
    edits: [
      {
        file: 'src/queues/send.ts',
        find: 'if (receiver === this.#transaction.group && delayMs === 0) {',
        replace: 'if (receiver === this.#transaction.group) {',
      },
    ],
  },
  {
    id: 'Q14',
    title: 'a delayed message is handled a second before it is due',
    edits: [
      {
        file: 'src/queues/take.ts',
        find: 'if (due !== undefined && due > this.#now) {',
        replace: 'if (due !== undefined && due > this.#now + 1_000_000) {',
      },
      {
        file: 'src/queues/take.ts',
        find: 'messages.every(({ due = now }) => due <= now),',
        replace: 'messages.every(({ due = now }) => due <= now + 1_000_000),',
      },
    ],
  },
]
