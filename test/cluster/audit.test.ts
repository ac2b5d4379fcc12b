/**
 * A small audit with real processes: trips through two gateways into three nodes, an index built
 * meanwhile, two trigger services, and anything killed; `sim audit` accounts for all of it.
 */
import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { simHere } from '../sim/command.ts'
import { programPath, withFolder } from './harness.ts'

const simPath = fileURLToPath(new URL('../../sim/main.js', pathToFileURL(programPath)))
const tripCount = 400

function audit(...flags: readonly string[]): {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
} {
  const options = { encoding: 'utf8', timeout: 590_000 } as const
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [simPath, 'audit', ...flags],
    options,
  )
  return { code: status, stdout, stderr }
}

/** Trips like real ones: few zones have most of them, times and totals occur more than once. */
function tripsFile(): string {
  const lines = Array.from({ length: tripCount }, (_, i) => {
    const day = String(1 + (i % 28)).padStart(2, '0')
    return `${i % 5 === 0 ? 1 + (i % 60) : 132},2018-10-${day} 0${i % 10}:00:00,${(i % 40) - 2}.5`
  })
  return ['pickup_location_id,pickup_datetime,total_amount', ...lines, ''].join('\n')
}

test(
  'the audit accounts for every cell, entry and effect after random kills and lost disks',
  { timeout: 600_000 },
  () =>
    withFolder(async (folder) => {
      const file = join(folder, 'trips.csv')
      await writeFile(file, tripsFile())
      const flags = ['--seconds', '8', '--seed', '3', '--replace', '2', '--json']
      const { code, stdout, stderr } = audit(file, ...flags)
      expect(code, `${stdout}\n${stderr}`).toBe(0)
      const told: { readonly replaced: number } = JSON.parse(stdout)
      expect(told).toMatchObject({
        ...{ outcome: 'clean', trips: tripCount, indexEntries: tripCount, violations: [] },
        kills: { node: expect.any(Number), gateway: expect.any(Number) },
      })
      expect(told.replaced).toBeGreaterThan(0)
    }),
)

test('audit refuses unusable files and flags with one sentence', () =>
  withFolder(async (folder) => {
    const file = join(folder, 'other.csv')
    await writeFile(file, 'name\nAnn\n')
    for (const [flags, said] of [
      [[join(folder, 'none.csv')], 'none.csv cannot be read'],
      [[file], 'has no rows with pickup_location_id'],
      [[file, '--seconds', '0'], '--seconds must be 1 to 3600'],
      [[file, '--replace', '0'], '--replace must be at least 1'],
      [[file, '--mutant', 'X99'], 'unknown mutant "X99"'],
    ] as const) {
      const { code, stdout, stderr } = await simHere('audit', ...flags)
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toContain(said)
      expect(stderr.trim().split('\n')).toHaveLength(1)
    }
  }))
