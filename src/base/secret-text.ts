/**
 * The form of a secret. It travels in a header of HTTP, which has one form for printable ASCII alone: a
 * client whose secret has another letter would be admitted by one protocol and refused by the other.
 */

/** A shorter secret can be guessed from a recorded handshake. */
export const secretCharsMin = 16
/** A header of HTTP has room for it, with all others. */
export const secretCharsMax = 1024

/** The reason why it is no secret of a cluster, in words that follow "the secret …", or undefined. */
export function secretProblem(secret: string): string | undefined {
  const wrong = /[^\x20-\x7e]/u.exec(secret)
  if (wrong !== null) {
    const place = Array.from(secret.slice(0, wrong.index)).length + 1
    return `has ${nameCharacter(wrong[0])} as its character ${place}, and is to be printable ASCII, which HTTP can carry; ${advice}`
  }
  const short = shortSecretProblem(secret)
  if (short !== undefined) return short
  if (secret.length > secretCharsMax) {
    return `has ${secret.length} characters, and ${secretCharsMax} are the most`
  }
  return undefined
}

/**
 * The same of a secret that goes over links alone, as nodes prove themselves to one another: no header
 * carries it, so any text will do that is long enough, one over several lines as well.
 */
export function shortSecretProblem(secret: string): string | undefined {
  if (secret.length >= secretCharsMin) return undefined
  if (secret === '') return `is empty; ${advice}`
  return `has ${secret.length} characters; at least ${secretCharsMin} are wanted (${advice})`
}

const advice = 'openssl rand -hex 32 makes a good one'

function nameCharacter(character: string): string {
  if (character === '\n' || character === '\r') return 'a line break'
  if (character === '\ufffd') return 'what is no text'
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
  return `U+${code}`
}
