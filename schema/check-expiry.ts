/**
 * SCH-16: rows expire after a span of whole seconds, or at a moment that a timestamp property of theirs has.
 */
import type { Complaints, TableDraft } from './draft.ts'
import { ttlSecondsMax } from './limits.ts'
import { didYouMean, type SchemaPath } from './problem.ts'

export function checkExpiry(table: TableDraft, at: SchemaPath, complaints: Complaints): void {
  const { name, expiry, properties } = table
  const complain = (message: string, hint?: string): void => {
    complaints.add('bad-expiry', [...at, 'expiry'], `table ${name}: ${message}`, hint)
  }
  if (expiry === undefined) return
  if (expiry.kind === 'after') {
    const { seconds } = expiry
    if (Number.isSafeInteger(seconds) && seconds >= 1 && seconds <= ttlSecondsMax) return
    return complain(`its TTL is ${seconds} seconds; expected 1 second to 36500 days`)
  }
  const property = properties.find((one) => one.name === expiry.property)
  if (property === undefined) {
    const known = properties.filter(({ type }) => type.kind === 'timestamp').map((one) => one.name)
    const hint = didYouMean(expiry.property, known)
    return complain(`EXPIRES AT ${expiry.property}, which is not one of its properties`, hint)
  }
  const { presence, type } = property
  if (type.kind === 'timestamp' && presence !== 'repeated') return
  const what = presence === 'repeated' ? 'a list' : `of type ${type.kind}`
  const hint = 'a row expires at one moment: name a timestamp, required or optional'
  complain(`EXPIRES AT ${property.name}, which is ${what}`, hint)
}
