/** Options that an index can have besides its properties: each kind has options of its own. */
import type { Complaints, IndexDraft } from './draft.ts'
import { indexShardsDefault, indexShardsMax, indexSpreadMax } from './limits.ts'
import { didYouMean, type SchemaPath } from './problem.ts'

const wordByOption = { shards: 'SHARDS', shardBy: 'SHARD BY', spread: 'SPREAD' } as const

export function checkOptions(index: IndexDraft, at: SchemaPath, complaints: Complaints): void {
  if (index.kind !== 'inline' && index.into !== undefined) {
    const message = `index ${index.name}: IN TABLE is of INLINE indexes`
    complaints.add('bad-option', [...at, 'into'], message, 'leave it out')
  }
  if (index.kind === 'global') return checkGlobal(index, at, complaints)
  for (const option of ['shards', 'shardBy', 'spread'] as const) {
    if (index[option] === undefined) continue
    const message = `index ${index.name}: ${wordByOption[option]} is of GLOBAL indexes`
    complaints.add('bad-option', [...at, option], message, 'leave it out')
  }
}

function checkGlobal(index: IndexDraft, at: SchemaPath, complaints: Complaints): void {
  const { name, parts, shards, shardBy, spread, unique } = index
  const complain = (option: string, reason: string, hint?: string): void => {
    complaints.add('bad-option', [...at, option], `index ${name}: ${reason}`, hint)
  }
  if (shards !== undefined && !isWithin(shards, indexShardsMax)) {
    complain('shards', `SHARDS ${shards} is not a whole number from 1 to ${indexShardsMax}`)
  }
  if (spread !== undefined && !isWithin(spread, indexSpreadMax)) {
    complain('spread', `SPREAD ${spread} is not a whole number from 1 to ${indexSpreadMax}`)
  } else if (spread !== undefined && spread > (shards ?? indexShardsDefault)) {
    complain('spread', `SPREAD ${spread} is more than its SHARDS ${shards ?? indexShardsDefault}`)
  } else if (spread !== undefined && spread > 1 && unique) {
    const hint = 'one group has to see all entries of a value to know that it is the only one'
    complain('spread', 'is UNIQUE and has SPREAD', hint)
  }
  if (shardBy !== undefined && !parts.some(({ path }) => path === shardBy)) {
    const paths = parts.map(({ path }) => path)
    const hint = didYouMean(shardBy, paths)
    complain('shardBy', `SHARD BY ${shardBy} is not one of what it is over`, hint)
  }
}

function isWithin(value: number, most: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= most
}
