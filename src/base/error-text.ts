/**
 * A thrown value in words that can be stored: applications may throw anything, also a value without words.
 */

/**
 * Never throws, and is never empty: whole characters, `charsMax` UTF-16 units at most. `Error`s give their name
 * and message.
 */
export function errorText(thrown: unknown, charsMax: number = 1_000): string {
  const text = describeThrown(thrown)
    .replaceAll(/\p{Surrogate}/gu, '\ufffd')
    .trim()
  if (text === '') return 'it threw an empty text'
  if (text.length <= charsMax) return text
  const cut = text.slice(0, charsMax)
  // Not in the middle of a pair.
  return /[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut
}

function describeThrown(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return `${thrown.name}: ${thrown.message}`
    return typeof thrown === 'string' ? thrown : `it threw ${String(thrown)}`
  } catch {
    return 'it threw what has no words'
  }
}
