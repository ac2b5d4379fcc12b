/** The model of the groups, against entries that were chosen. */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { encodeEntry } from '../../src/replication/entry.ts'
import { LogModel } from '../../sim/checkers/log-model.ts'
import { Referee } from '../../sim/checkers/referee.ts'

const group: string = groupOfBytes(Buffer.from('g'))

test('TTL-3: an entry without transactions moves the time of its group on', () => {
  const referee = new Referee(() => 0)
  const model = new LogModel({ referee })
  const moments: unknown[] = []
  const effects: unknown[] = []
  model.onMoment = (moment) => moments.push(moment)
  model.onEffect = (effect) => effects.push(effect)
  const nextLeader = { node: nodeId('n1'), incarnation: 1 }
  const ballot = { epoch: 1, round: 0, node: nodeId('n1'), incarnation: 1 }
  for (const position of [1, 2]) {
    const timestamp = 100 * position
    const value = encodeEntry({ position, timestamp, horizon: 0, nextLeader, transactions: [] })
    const votes = { acceptors: new Map(), proposed: new Map(), heardByBallot: new Map() }
    model.onChosen({ group, position, ...votes, chosen: { ballot, value } })
  }
  expect(moments).toEqual([
    { group, position: 1, timestamp: 100 },
    { group, position: 2, timestamp: 200 },
  ])
  expect([effects, referee.violations]).toEqual([[], []])
})
