/**
 * The voters of each replica set when everything has healed: each change of them has ended, and each node that is in
 * service votes.
 */
import type { MembersReport } from '../../src/members/report.ts'
import { computeMajority } from '../../src/placement/placement.ts'
import type { Referee } from '../checkers/referee.ts'
import type { SimCluster } from './comparison.ts'

const votersMicros = 60_000_000
/** Events between two looks. */
const lookEvents = 64

export async function expectVoters(
  cluster: SimCluster,
  referee: Referee,
  isBroken: () => boolean,
): Promise<void> {
  const { world } = cluster
  let problems = findProblems(cluster)
  let events = 0
  const isDone = (): boolean => {
    if (isBroken()) return true
    if (events++ % lookEvents === 0) problems = findProblems(cluster)
    return problems.length === 0
  }
  await world.run(isDone, world.nowMicros + votersMicros)
  referee.check(
    isBroken() || problems.length === 0,
    'LIVE-1',
    'A change of the voters did not end in the healed world.',
    () => ({ problems }),
  )
}

function findProblems(cluster: SimCluster): readonly string[] {
  const { inService, placement } = cluster
  const names = inService.map(({ name }) => name)
  return inService.flatMap(({ name }) => {
    const report = cluster.readMembers(name)?.report
    if (report === undefined) return [`${name} is not open`]
    const set = placement.nodes.filter((one) => report.members.some(({ node }) => node === one))
    const voters = set.filter((one) => names.includes(one))
    return findProblem(report, voters.length - computeMajority(set)).map((one) => `${name}: ${one}`)
  })
}

function findProblem({ change, members, canLose }: MembersReport, expected: number): string[] {
  if (change?.phase === 'copying' || change?.phase === 'sealing') {
    return [`change ${change.number} (${change.kind}) is ${change.phase}`]
  }
  // A node that has lost the word of another one hears of it again with the next change, or the next link.
  const unknown = members.filter(({ isAlive, standing }) => isAlive && standing === 'unknown')
  if (canLose + unknown.length === expected) return []
  const told = members.map(({ node, standing }) => `${node} ${standing}`).join(', ')
  return [`can lose ${canLose}, and not ${expected}: ${told}`]
}
