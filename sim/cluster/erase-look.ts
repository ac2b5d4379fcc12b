/** In the healed world every node erases what was deleted, and says so only when it is gone. */
import type { Referee } from '../checkers/referee.ts'
import { flushesFrom, numberOfKey } from '../../src/journal/ordered-journal.ts'
import { fromLatin1 } from '../../src/base/bytes.ts'
import type { SimCluster } from './comparison.ts'

/** Far more than any `eraseWithinMs` that is drawn: disks may be slow. */
const eraseMicros = 300_000_000
/** Events between two looks. */
const lookEvents = 256

/** Where nodes erase at all. A node that is out of service for good holds up the logs of all others. */
export async function expectErased(
  cluster: SimCluster,
  referee: Referee,
  isBroken: () => boolean,
): Promise<void> {
  const { world, hosts, inService, judge, coverage } = cluster
  const requests = (): number =>
    hosts.reduce((sum, { program }) => sum + countRequests(program?.status()), 0)
  if (inService.length < hosts.length) return
  let events = 0
  const isDone = (): boolean => isBroken() || (events++ % lookEvents === 0 && requests() === 0)
  const ending = await world.run(isDone, world.nowMicros + eraseMicros)
  if (isBroken()) return
  referee.check(
    ending === 'done',
    'ERASE-1',
    'What was deleted is not erased in the healed world.',
    () => ({ nodes: hosts.map(({ name, program }) => [name, program?.status().replica.erase]) }),
  )
  for (const { name, disks, program } of hosts) {
    if (program === undefined || program.status().replica.erase.requests.length > 0) continue
    const [oldest] = disks.log.disk.durableKeys(flushesFrom(0))
    const oldestFlush = oldest === undefined ? undefined : numberOfKey(fromLatin1(oldest))
    judge.erased.check(name, { oldestFlush, remains: disks.data.disk.remains })
    coverage.count('node said that nothing is left to be erased')
  }
}

function countRequests(
  status:
    { readonly replica: { readonly erase: { readonly requests: readonly unknown[] } } } | undefined,
): number {
  return status?.replica.erase.requests.length ?? 0
}
