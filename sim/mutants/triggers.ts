/**
 * Planted bugs in triggers: the owner of a shard, the offset of its trigger, the handling of
 * failures.
 */
import type { Edit, Mutant } from './mutant.ts'

/**
 * For what needs workers that meet at a bad moment: the mutant's seeds all have some, with
 * troubles.
 */
const inTroubles: readonly Edit[] = [
  {
    file: 'sim/swarm.ts',
    find: 'triggerWorkerCount: random.pick([0, 0, 0, 0, 2, 3])',
    replace: 'triggerWorkerCount: random.pick([2, 3])',
  },
  {
    file: 'sim/swarm.ts',
    find: 'triggerTroubles: random.pick([0, 1, 1, 1])',
    replace: 'triggerTroubles: 1',
  },
]

export const triggerMutants: readonly Mutant[] = [
  {
    id: 'G11',
    title: "an offset is saved before the handler's promise is resolved",
    edits: [
      {
        file: 'src/triggers/shard-run.ts',
        find: '    const failure = await this.#handle(next, attempts)\n',
        replace:
          '    const { offsets, claim } = this.#parts\n' +
          '    const early = this.#offset\n' +
          '    if (early !== undefined) {\n' +
          '      await this.#untilDone(() => offsets.save(claim, early, next.addedId))\n' +
          '    }\n' +
          '    const failure = await this.#handle(next, attempts)\n',
      },
    ],
  },
  {
    id: 'R02',
    title: 'who was displaced still moves the offset',
    edits: [
      {
        file: 'src/triggers/offset-store.ts',
        find: "      if (!isOf(row, claim)) return { kind: 'displaced', offset: row }\n",
        replace: '',
      },
      {
        file: 'src/triggers/offset-store.ts',
        find: "      await putOffset(tx, of, this.#name, offset)\n      return { kind: 'done', offset }\n    })\n  }\n\n  async #read",
        replace:
          '      const { generation, owner } = held\n' +
          '      await putOffset(tx, of, this.#name, { ...offset, generation, owner })\n' +
          "      return { kind: 'done', offset }\n    })\n  }\n\n  async #read",
      },
    ],
  },
  {
    id: 'R03',
    title: 'who looks up where to go on takes what it has fetched for what is stored',
    edits: [
      {
        file: 'src/triggers/shard-run.ts',
        find: '    const epoch = (this.#epoch += 1)\n    this.#forget()\n',
        replace:
          '    const epoch = (this.#epoch += 1)\n' +
          '    const fetched = this.#place\n' +
          '    this.#forget()\n',
      },
      {
        file: 'src/triggers/shard-run.ts',
        find: "        : { kind: 'after', shard, addedId: row?.after ?? 0 }\n",
        replace:
          "        : { kind: 'after', shard, addedId: row?.after ?? 0 }\n" +
          "    if (fetched?.kind === 'after') this.#place = fetched\n",
      },
    ],
  },
  {
    id: 'R04',
    title: 'a cell that is marked has no row',
    edits: [
      {
        file: 'src/triggers/offset-store.ts',
        find: '      await putMarked(tx, of, this.#name, marked)\n',
        replace: '      void marked\n',
      },
    ],
  },
  {
    id: 'R05',
    title: 'a cell that has failed often enough is passed over',
    edits: [
      {
        file: 'src/triggers/shard-run.ts',
        find: 'if (this.#attempts >= trigger.attemptsMax) return this.#mark(cell, error, epoch)\n',
        replace: 'if (this.#attempts >= trigger.attemptsMax) return this.#pass(cell)\n',
      },
    ],
  },
  {
    id: 'R06',
    title: 'a shard that is moved keeps its generation',
    edits: [
      {
        file: 'src/triggers/assignment.ts',
        find: 'releasedUpTo >= asked) return { owner: goal, generation }\n',
        replace: 'releasedUpTo >= asked) return { ...now, owner: goal }\n',
      },
    ],
  },
  {
    id: 'R07',
    title: 'the threshold of marked cells is not looked at',
    edits: [
      {
        file: 'src/triggers/service-store.ts',
        find: "  if (state !== 'running' || marked - left.forgiven <= marksMax) return left\n",
        replace: "  if (state !== 'stopped' || marked <= marksMax) return left\n",
      },
    ],
  },
  {
    id: 'R08',
    title: 'cells that were asked for before a replay are taken after it',
    edits: [
      {
        file: 'src/triggers/shard-run.ts',
        find: '    if (asked !== this.#asked || this.isStopped) {\n',
        replace: '    if (asked < 0 || this.isStopped) {\n',
      },
    ],
  },
  {
    id: 'R09',
    title: 'a handler that hangs has handled its cell',
    edits: [
      {
        file: 'src/triggers/attempt.ts',
        find: '      resolve(`it had not ended after ${timeoutMs} ms`)\n',
        replace: '      resolve(undefined)\n',
      },
    ],
  },
  {
    id: 'R10',
    title: 'a marked cell that fails again is marked no more',
    edits: [
      {
        file: 'src/triggers/shard-run.ts',
        find: '      failure === undefined\n        ? offsets.unmark',
        replace: '      failure !== null\n        ? offsets.unmark',
      },
    ],
  },
  {
    id: 'R13',
    title: 'a claim takes the shard over without its generation',
    edits: [
      ...inTroubles,
      {
        file: 'src/triggers/offset-store.ts',
        find: '      const offset = { ...before, generation, owner }\n',
        replace:
          '      const offset = { ...before, generation: before.generation || generation, owner }\n',
      },
    ],
  },
  {
    id: 'R12',
    title: 'room for an answer is told to the tail alone that had it',
    edits: [
      {
        file: 'src/triggers/tail.ts',
        find: '      this.#parts.onRoom()\n',
        replace: '      this.pump()\n',
      },
    ],
  },
  {
    id: 'R14',
    title: 'a replay takes rows of marked cells away, and not their count',
    edits: [
      {
        file: 'src/triggers/admin.ts',
        find: 'return { ...row, after, marked: row.marked - marked.length }',
        replace: 'return { ...row, after }',
      },
    ],
  },
  {
    id: 'R16',
    title: 'a shard is given up while its handler is at work',
    edits: [
      {
        file: 'src/triggers/worker.ts',
        find: '    await Promise.all(this.#runs.map((run) => run.quiet()))\n',
        replace: '    await Promise.resolve()\n',
      },
    ],
  },
  {
    id: 'R17',
    title:
      'that the last mark of a shard is gone is told by who took it away alone, who may have died',
    edits: [
      {
        file: 'src/triggers/shard-run.ts',
        find: '    if (marked === 0 && wereNone && !this.#isMiscounted) return []\n',
        replace: '    if (marked === 0) return []\n',
      },
    ],
  },
]
