/**
 * Stories of read leases, for the golden scripts. n3 reads; n1 leads and writes. No lease is renewed by
 * itself: each story is over before that, or its holder is dead.
 */
import { Stage } from './stage.ts'
import { begun, to, type Story } from './stories.ts'

/** The leases that an acceptor granted before it started have run out by then. */
const startMs = 2_000

/** n3 is registered with n1 and n2 as a reader of the group. */
function registered(): Stage {
  const stage = begun(new Stage({ hasLeases: true, startMs }))
  stage.tell('Before: a client of n3 has read, at 2.003. That read registered n3 with n1 and n2.')
  stage.quietly(() => {
    stage.read(3)
    stage.run()
  })
  return stage
}

const leasedRead: Story = {
  name: 'leased-read',
  title: 'A read under a lease sends no message',
  look: [
    'The first read asks the voters; their answers register n3. The second one sends nothing.',
    'n3 accepts the entry of a writer along with n2, so the writer sends it nothing more.',
    'A read in between waits for that entry, and asks nobody: the notice is on its way.',
  ],
  tell() {
    const stage = begun(new Stage({ hasLeases: true, startMs }))
    stage.tell('A client of n3 reads. The majority read registers n3 with both other voters.')
    stage.read(3)
    stage.run()
    stage.tell('A client of n3 reads again.')
    stage.read(3)
    stage.tell('A client of n1 writes a=1. n3 has accepted it when its client reads once more.')
    const own = { session: 'ann', sequence: 1, attempt: 1, readPosition: 1 }
    stage.write(1, { key: 'a', value: '1', ...own })
    stage.until(() => (stage.node(3).durable.get(2)?.accepted?.ballot.round ?? 1) === 0)
    stage.read(3)
    stage.run()
    stage.tell('It reads again.')
    stage.read(3)
    return stage
  },
}

const invalidate: Story = {
  name: 'write-waits-for-holder',
  title: 'A write waits for a lease holder that has not accepted',
  look: [
    'n2 and n1 have accepted #2, so it is chosen; both list n3. It is not committed yet.',
    'n3 answers invalidate from memory: it shows nothing below #2 from then on, and stays registered.',
    'The commit follows. A read at n3 waits until #2 is there.',
  ],
  tell() {
    const stage = registered()
    stage.tell('A client of n1 writes a=1. The accept to n3 is lost.')
    stage.lose(to('n3', 'accept'))
    const own = { session: 'ann', sequence: 1, attempt: 1, readPosition: 1 }
    const write = stage.write(1, { key: 'a', value: '1', ...own })
    stage.until(() => stage.node(1).verdicts.has(write))
    stage.tell('A client of n3 reads.')
    const read = stage.read(3)
    stage.loseNothing()
    stage.until(() => stage.node(3).served.has(read))
    stage.run()
    return stage
  },
}

const revoke: Story = {
  name: 'dead-holder',
  title: 'A dead lease holder delays a write until its lease has run out',
  look: [
    'n3 is dead and registered at both voters of the majority, so #2 waits for it.',
    'n1 asks each voter that listed n3 to revoke, itself too: they tell n3, and hear nothing.',
    'The lease ran from 2.003: n3 counts 930 ms of it, voters 1,010 ms. Then #2 is committed.',
  ],
  tell() {
    const stage = registered()
    stage.tell('n3 dies. Most of its lease has passed when a client of n1 writes a=1.')
    stage.stop(3)
    stage.pass(850)
    const own = { session: 'ann', sequence: 1, attempt: 1, readPosition: 1 }
    const write = stage.write(1, { key: 'a', value: '1', ...own })
    stage.until(() => stage.node(1).verdicts.has(write))
    stage.run()
    return stage
  },
}

export const leaseStories: readonly Story[] = [leasedRead, invalidate, revoke]
