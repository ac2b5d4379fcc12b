/**
 * Planted bugs of agreement, searched for in copies of the sources: found every time, not by luck. One or
 * two a scope and rule at night, and one each of votes, lost data, epochs, leases, readers and buckets with every change: `sim mutants`
 * searches for all.
 */
import { expect, test } from 'vitest'
import { huntByExploring } from '../../sim/explore/hunt.ts'
import { mutants } from '../../sim/mutants/mutants.ts'
import { isNightly } from '../nightly-tests.ts'

type Case = readonly [id: string, scope: string, rule: string, events: number]

const representative: readonly Case[] = [
  ['G02', 'rivals', 'PAX-4', 4],
  ['END8', 'lost-data-read', 'LEASE-3', 9],
  ['MOV4', 'change', 'PAX-1', 12],
  ['G04', 'lease-cold', 'LEASE-2', 7],
  ['RDR2', 'reader', 'LEASE-3', 7],
  ['BKT4', 'close', 'MOVE-14', 8],
]

const others: readonly Case[] = [
  ['G03', 'duel', 'PAX-5', 15],
  ['G08', 'duel', 'PAX-3', 5],
  ['G09-ranges', 'phantom', 'TXN-2', 7],
  ['K01-all', 'read-restarts', 'LEASE-3', 9],
  ['END7', 'lost-data', 'PAX-1', 12],
  ['END9', 'lost-data-read', 'LEASE-3', 10],
  ['END10', 'lost-data', 'PAX-1', 15],
  ['MOV2', 'change', 'PAX-1', 15],
  ['MOV5', 'change', 'PAX-1', 14],
  ['RDR1', 'reader', 'MOVE-3', 3],
  ['RDR3', 'reader-forward', 'MOVE-3', 2],
  ['GRP2', 'arrive', 'PAX-5', 3],
  ['BKT1', 'close', 'MOVE-14', 5],
  ['BKT2', 'close', 'MOVE-14', 8],
  ['BKT3', 'close-crash', 'MOVE-14', 4],
  ['BKT5', 'close', 'MOVE-14', 8],
  ['G06', 'lease-retried', 'LEASE-1', 10],
  ['L02', 'lease-revoked', 'LEASE-2', 12],
  ['L04', 'lease', 'LEASE-2', 8],
  ['L08', 'lease', 'LEASE-2', 6],
  ['L13', 'lease-restarts', 'LEASE-2', 6],
  ['L18', 'lease-retried', 'LEASE-2', 10],
  ['L19', 'lease-given-up', 'LEASE-2', 14],
  ['L21', 'lease-idle', 'LEASE-2', 15],
]

test.each(isNightly ? [...representative, ...others] : representative)(
  '%s is found in the scope %s by %s, in %i events',
  async (id, scope, rule, events) => {
    const mutant = mutants.find((one) => one.id === id)
    expect(mutant).toBeDefined()
    if (mutant === undefined) return
    const { isAsExpected, reports } = await huntByExploring(mutant, {
      scopes: [scope],
      secondsMax: 60,
    })
    expect(isAsExpected).toBe(true)
    const [report] = reports
    expect(report?.breach).toMatchObject({ rule })
    expect(report?.breach?.path.length).toBe(events)
    expect(report?.isComplete).toBe(false)
  },
)
