/** Stories of the log without leases, for the golden scripts. */
import type { InFlight } from './core-cluster.ts'
import { Stage, type Loss } from './stage.ts'

export interface Story {
  /** Of its script. */
  readonly name: string
  readonly title: string
  /** The points to look at. */
  readonly look: readonly string[]
  tell(): Stage
}

export const to =
  (node: string, ...kinds: readonly string[]): Loss =>
  ({ to: receiver, message }: InFlight) =>
    receiver === node && (kinds.length === 0 || kinds.includes(message.kind))

export const around =
  (node: string): Loss =>
  ({ from, to: receiver }) =>
    from === node || receiver === node

/** Position 1 holds a=0 everywhere, and n1 leads position 2. */
export function begun(stage: Stage): Stage {
  stage.tell('Before: every node has applied #1, which n1 proposed; it holds a=0, and names n1.1.')
  stage.quietly(() => {
    stage.write(1, { key: 'a', value: '0', session: 'first', sequence: 1, attempt: 1 })
    stage.run()
  })
  return stage
}

const commitAtLeader: Story = {
  name: 'commit-at-leader',
  title: 'A commit at the leader',
  look: [
    'The commit takes one round trip: accept, accepted, and the caller is answered.',
    'At #1 the leader writes its own record before it sends the value; from #2 on it sends first.',
    'The notice goes out after the answer, and the next accept carries it too.',
  ],
  tell() {
    const stage = new Stage()
    stage.tell(
      'A client of n1 writes a=1. No entry named a leader yet: n1 is the first full replica.',
    )
    stage.write(1, { key: 'a', value: '1', session: 'ann', sequence: 1, attempt: 1 })
    stage.run()
    stage.tell('It writes a=2. The entry at #1 names n1.1: ballot zero needs no prepare at #2.')
    stage.write(1, {
      key: 'a',
      value: '2',
      session: 'ann',
      sequence: 2,
      attempt: 1,
      readPosition: 1,
    })
    stage.run()
    return stage
  },
}

const forwardedCommit: Story = {
  name: 'forwarded-commit',
  title: 'A forwarded commit',
  look: [
    'n2 passes the write on to the leader, accepts its entry, and answers its own client.',
    'It answers once it has applied the entry, so the client reads its own write at n2.',
    'The forward-reply leaves after the notice: n2 has nothing to fetch when it comes.',
  ],
  tell() {
    const stage = begun(new Stage())
    stage.tell('A client of n2 writes b=1.')
    stage.write(2, {
      key: 'b',
      value: '1',
      session: 'bob',
      sequence: 1,
      attempt: 1,
      readPosition: 1,
    })
    stage.run()
    return stage
  },
}

const combination: Story = {
  name: 'combination',
  title: 'Two writers share an entry',
  look: [
    'While #2 is open, two more writes come to n1: one from its own client, one forwarded.',
    'Neither reads what the other writes, so #3 holds both, in the order of their arrival.',
    'Three writes cost two entries.',
  ],
  tell() {
    const stage = begun(new Stage())
    stage.tell('Clients of n1 write b=1, then c=1; a client of n2 writes d=1 at the same time.')
    stage.write(1, {
      key: 'b',
      value: '1',
      session: 'ann',
      sequence: 1,
      attempt: 1,
      readPosition: 1,
    })
    stage.write(1, {
      key: 'c',
      value: '1',
      session: 'eve',
      sequence: 1,
      attempt: 1,
      readPosition: 1,
    })
    stage.write(2, {
      key: 'd',
      value: '1',
      session: 'bob',
      sequence: 1,
      attempt: 1,
      readPosition: 1,
    })
    stage.run()
    return stage
  },
}

const promotion: Story = {
  name: 'promotion',
  title: 'A write is promoted to the next position',
  look: [
    'Both writers read at #1. The first one gets #2; nothing that the second one read changed.',
    'So the second write moves to #3 by itself, and its client does not run it again.',
    'Its forward says that it read c at #1; the entry between wrote b.',
  ],
  tell() {
    const stage = begun(new Stage())
    stage.tell('A client of n1 writes b=1. A client of n2, which has read c at #1, writes d=1.')
    stage.write(1, {
      key: 'b',
      value: '1',
      session: 'ann',
      sequence: 1,
      attempt: 1,
      readPosition: 1,
    })
    stage.write(2, {
      ...{ key: 'd', value: '1', session: 'bob', sequence: 1, attempt: 1 },
      ...{ reads: ['c'], readPosition: 1 },
    })
    stage.run()
    return stage
  },
}

const conflict: Story = {
  name: 'conflict',
  title: 'A conflict is named with its writer',
  look: [
    'Both writers read a at #1. The first one writes a at #2, so the second one has read too early.',
    'The refusal rests on the applied #2 and names the key, its position and its writer.',
    'A rerun, which reads at #2 and is another attempt of the same intent, commits.',
  ],
  tell() {
    const stage = begun(new Stage())
    const seen = { key: 'a', reads: ['a'], readPosition: 1 }
    stage.tell('A client of n1 reads a and writes a=1. So does a client of n2, with a=2.')
    stage.write(1, { ...seen, value: '1', session: 'ann', sequence: 1, attempt: 1 })
    stage.write(2, { ...seen, value: '2', session: 'bob', sequence: 1, attempt: 1 })
    stage.run()
    stage.tell('The client of n2 runs again: it reads a at #2.')
    const again = { ...seen, readPosition: 2, value: '2' }
    stage.write(2, { ...again, session: 'bob', sequence: 1, attempt: 2 })
    stage.run()
    return stage
  },
}

const takeoverAdopts: Story = {
  name: 'takeover-adopts',
  title: 'A takeover adopts what may have been chosen',
  look: [
    "n1's value at #2 is chosen: n1 and n2 have it. n1 dies before it hears so.",
    'n3 prepares above ballot zero. The promise of n2 names the value, and n3 proposes that value.',
    'Its own write waits for #3. The adopted entry names n1 as leader, so n3 prepares there again.',
  ],
  tell() {
    const stage = begun(new Stage())
    stage.tell('A client of n1 writes b=1. n3 does not hear of it, and n1 dies.')
    stage.lose((sent) => to('n3')(sent) || to('n1')(sent))
    stage.write(1, {
      key: 'b',
      value: '1',
      session: 'ann',
      sequence: 1,
      attempt: 1,
      readPosition: 1,
    })
    stage.run()
    stage.loseNothing()
    stage.stop(1)
    stage.tell('n3 takes n1 for gone. A client of n3 writes c=1.')
    stage.suspect(3, 1)
    const own = { session: 'eve', sequence: 1, attempt: 1, readPosition: 1 }
    const write = stage.write(3, { key: 'c', value: '1', ...own })
    stage.until(() => stage.node(3).verdicts.has(write))
    stage.run()
    return stage
  },
}

const takeoverNoOp: Story = {
  name: 'takeover-no-op',
  title: 'A takeover closes a hole with a no-op',
  look: [
    'Only n3 has the value at #2: n1 crashed before its own disk had it. It was never chosen.',
    'A read at n2 hears from n3 that #2 exists; then n3 is gone. A majority of n1 and n2 knows nothing.',
    'So n2 closes #2 with a no-op and serves the read. n3 drops its own value when it comes back.',
  ],
  tell() {
    const stage = begun(new Stage())
    stage.tell(
      'A client of n1 writes b=1. Its disk stalls, n2 does not hear of it, and n1 crashes.',
    )
    stage.node(1).isHeld = true
    stage.lose((sent) => to('n2')(sent) || to('n1')(sent))
    stage.write(1, {
      key: 'b',
      value: '1',
      session: 'ann',
      sequence: 1,
      attempt: 1,
      readPosition: 1,
    })
    stage.run()
    stage.loseNothing()
    stage.stop(1)
    stage.tell('A client of n2 reads. n3 answers that #2 exists, and is cut off then.')
    const read = stage.read(2)
    stage.until(() => stage.cluster.now >= 5)
    stage.lose(around('n3'))
    stage.tell('n1 is back, without a record of #2.')
    stage.restart(1)
    stage.until(() => stage.node(2).served.has(read))
    stage.run()
    stage.loseNothing()
    stage.tell('n3 is back, and after a while looks after the #2 that it has accepted.')
    stage.until(() => stage.node(3).replica.applied(stage.cluster.group).position === 2)
    return stage
  },
}

const duel: Story = {
  name: 'duel',
  title: 'A duel, and the loser backs off',
  look: [
    'n2 and n3 take n1 for gone and prepare #2 at the same round. The ballot of n3 is higher.',
    'n2 has its promises first, but each node has promised n3 more by then: its accepts are refused.',
    'n2 backs off. It hears of the value of n3 meanwhile, and passes its own write on to n3.',
  ],
  tell() {
    const stage = begun(new Stage())
    stage.tell('n2 and n3 take n1 for gone. A client of n2 writes b=1, one of n3 writes c=1.')
    stage.suspect(2, 1)
    stage.suspect(3, 1)
    const own = { sequence: 1, attempt: 1, readPosition: 1 }
    const write = stage.write(2, { key: 'b', value: '1', session: 'bob', ...own })
    stage.write(3, { key: 'c', value: '1', session: 'eve', ...own })
    stage.until(() => stage.node(2).verdicts.has(write))
    stage.run()
    return stage
  },
}

const backOff: Story = {
  name: 'back-off',
  title: 'A loser tries again at a higher round',
  look: [
    'As in the duel, but all accepts of n3 are lost on their way: the winner makes no progress.',
    'n2 backs off, then prepares at round 2, above every round that it has seen.',
    'A majority answers without the value of n3, so n2 proposes its own, and n3 waits for #3.',
  ],
  tell() {
    const stage = begun(new Stage())
    stage.tell('n2 and n3 take n1 for gone, and both write. What n3 asks to accept is lost.')
    stage.suspect(2, 1)
    stage.suspect(3, 1)
    stage.lose(({ from, message }) => from === 'n3' && message.kind === 'accept')
    const own = { sequence: 1, attempt: 1, readPosition: 1 }
    const write = stage.write(2, { key: 'b', value: '1', session: 'bob', ...own })
    stage.write(3, { key: 'c', value: '1', session: 'eve', ...own })
    stage.until(() => stage.node(2).verdicts.has(write))
    stage.loseNothing()
    stage.run()
    return stage
  },
}

const majorityRead: Story = {
  name: 'majority-read',
  title: 'A majority read finishes an accepted position',
  look: [
    'n2 has accepted #2, and n1 is gone. n3 asks the voters how far the log goes, and hears 2.',
    'Nobody can supply a committed entry, so n3 prepares, adopts the value and commits it.',
    'Only then it serves the read: what one read has seen must not vanish from the next.',
  ],
  tell() {
    const stage = begun(new Stage())
    stage.tell('A client of n1 writes b=1. Only n2 hears of it, and n1 dies.')
    stage.lose((sent) => to('n3')(sent) || to('n1')(sent))
    stage.write(1, {
      key: 'b',
      value: '1',
      session: 'ann',
      sequence: 1,
      attempt: 1,
      readPosition: 1,
    })
    stage.run()
    stage.loseNothing()
    stage.stop(1)
    stage.tell('A client of n3 reads.')
    const read = stage.read(3)
    stage.until(() => stage.node(3).served.has(read))
    stage.run()
    return stage
  },
}

const missedNotice: Story = {
  name: 'missed-notice',
  title: 'A node restarts and fetches what it was not told',
  look: [
    'n3 has accepted #2 on its disk, and its notice is lost. Then n3 restarts.',
    'Its record says accepted, not committed: it must not apply the value on its own word.',
    'After a while it asks a peer for the committed entry, and applies that.',
  ],
  tell() {
    const stage = begun(new Stage())
    stage.tell('A client of n1 writes b=1. n3 accepts, and its notice is lost.')
    stage.lose(to('n3', 'committed'))
    stage.write(1, {
      key: 'b',
      value: '1',
      session: 'ann',
      sequence: 1,
      attempt: 1,
      readPosition: 1,
    })
    stage.run()
    stage.loseNothing()
    stage.tell('n3 crashes and starts again.')
    stage.restart(3)
    stage.until(() => stage.node(3).rows.has('b'))
    return stage
  },
}

const missedEntry: Story = {
  name: 'missed-entry',
  title: 'A node fetches an entry below one that it accepts',
  look: [
    'n3 misses #2 altogether. The accept for #3 says at which ballot #2 was committed.',
    'n3 accepts #3 at once: acceptance needs no earlier position. It applies neither yet.',
    'It fetches #2 from n1, applies #2, then #3, never past the hole.',
  ],
  tell() {
    const stage = begun(new Stage())
    stage.tell('A client of n1 writes b=1. n3 hears nothing of it.')
    stage.lose(to('n3'))
    stage.write(1, {
      key: 'b',
      value: '1',
      session: 'ann',
      sequence: 1,
      attempt: 1,
      readPosition: 1,
    })
    stage.run()
    stage.loseNothing()
    stage.tell('It writes b=2.')
    stage.write(1, {
      key: 'b',
      value: '2',
      session: 'ann',
      sequence: 2,
      attempt: 1,
      readPosition: 2,
    })
    stage.run()
    return stage
  },
}

const retry: Story = {
  name: 'retry-through-another-node',
  title: 'A retry through another node takes effect once',
  look: [
    'The first try commits at #2, and its answer is lost. The same intent comes again, as attempt 2.',
    'n3 has applied #2: it answers by itself, with the outcome of attempt 1.',
    'n2 missed the notice: n1 tells it how far to go, and n2 answers once it has applied #2.',
  ],
  tell() {
    const stage = begun(new Stage())
    const intent = { key: 'b', session: 'ann', sequence: 1, readPosition: 1 }
    stage.tell('A client writes b=1 through n1. It never gets the answer; n2 misses the notice.')
    stage.lose(to('n2', 'committed'))
    stage.write(1, { ...intent, value: '1', attempt: 1 })
    stage.run()
    stage.loseNothing()
    stage.tell('It sends the intent again through n3, with another value.')
    stage.write(3, { ...intent, value: '2', attempt: 2 })
    stage.run()
    stage.tell('It sends it through n2 as well.')
    stage.write(2, { ...intent, value: '3', attempt: 3 })
    stage.run()
    return stage
  },
}

export const logStories: readonly Story[] = [
  ...[commitAtLeader, forwardedCommit, combination, promotion, conflict],
  ...[takeoverAdopts, takeoverNoOp, duel, backOff, majorityRead],
  ...[missedNotice, missedEntry, retry],
]
