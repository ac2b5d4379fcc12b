/**
 * Numbers that are given as text: decimal digits and nothing else (`Number` also takes `0x10`, blanks and the empty
 * text), and whether a number still says what its text says.
 */

/** A sign, digits with or without a point, an exponent. */
const pattern = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i

/** `digits` times ten to the power of `exponent`; digits neither begin nor end with a zero, and are none for zero. */
interface Decimal {
  readonly isNegative: boolean
  readonly digits: string
  readonly exponent: number
}

function parseDecimal(text: string): Decimal | undefined {
  const found = pattern.exec(text)
  if (found === null) return undefined
  const [, sign, whole = '', fraction = '', power = '0'] = found
  const all = whole + fraction
  if (all === '') return undefined
  const digits = withoutEndingZeros(all)
  return {
    isNegative: sign === '-',
    digits: digits.replace(/^0+/, ''),
    exponent: Number(power) - fraction.length + all.length - digits.length,
  }
}

/** By a loop: a pattern looks again from each zero of a long run. */
function withoutEndingZeros(text: string): string {
  let end = text.length
  while (end > 0 && text.charCodeAt(end - 1) === zero) end -= 1
  return text.slice(0, end)
}

const zero = 0x30

export function isDecimal(text: string): boolean {
  return parseDecimal(text) !== undefined
}

/** Whole numbers of more digits than this are of no type. */
const wholeDigitsMax = 40

/** The whole number that the text stands for: `1e3` and `1815.0` are whole. Undefined for a fraction, for no number, and over `wholeDigitsMax` digits. */
export function parseWhole(text: string): bigint | undefined {
  const decimal = parseDecimal(text)
  if (decimal === undefined) return undefined
  const { isNegative, digits, exponent } = decimal
  if (digits === '') return 0n
  if (exponent < 0 || digits.length + exponent > wholeDigitsMax) return undefined
  const value = BigInt(digits + '0'.repeat(exponent))
  return isNegative ? -value : value
}

/** Every whole number below it is a double. */
const exactBelow = 2 ** 53

/**
 * Whether a double does not say any more what the decimal text says. A fraction is rounded by every program
 * that reads it; a whole number that changes is an id that was lost, and a number that becomes zero is lost
 * altogether. A text that equals the double printed with as many digits as the text has loses nothing:
 * `6.0221407599999999e+23`.
 */
export function losesDigits(text: string): boolean {
  // Up to 15 digits fit always, unless an exponent moves them.
  if (text.length < 16 && !/e/i.test(text)) return false
  const value = Number(text)
  if (!Number.isFinite(value)) return true
  if (value !== 0 && Math.abs(value) < exactBelow) return false
  const meant = parseDecimal(text)
  if (meant === undefined) return true
  if (value === 0) return meant.digits !== ''
  if (hasFraction(meant)) return false
  const printed = [
    BigInt(value).toString(),
    `${value}`,
    value.toPrecision(Math.min(precisionMax, digitsWritten(text))),
  ]
  return !printed.some((one) => isSame(meant, parseDecimal(one)))
}

/** The most that `toPrecision` takes. */
const precisionMax = 100

/** With the zeros at the end: `123456789012345670` is no double, though one is printed so with 17 digits. */
function digitsWritten(text: string): number {
  const [mantissa = ''] = text.split(/e/i)
  return mantissa.replace(/\D/g, '').replace(/^0+/, '').length
}

function hasFraction({ exponent }: Decimal): boolean {
  return exponent < 0
}

function isSame(a: Decimal, b: Decimal | undefined): boolean {
  return a.digits === b?.digits && a.exponent === b.exponent && a.isNegative === b.isNegative
}

/** Every whole number below it is a float of 32 bits. */
const exactFloatBelow = 2 ** 24
const floatPrecisionMax = 9

/** The same for a float of 32 bits; false for what is too large for one. */
export function losesDigitsAsFloat(value: number): boolean {
  const float = Math.fround(value)
  if (float === value || !Number.isFinite(float)) return false
  if (float === 0) return true
  if (Math.abs(value) < exactFloatBelow) return false
  for (let precision = 1; precision <= floatPrecisionMax; precision++) {
    const printed = Number(float.toPrecision(precision))
    if (Math.fround(printed) === float) return printed !== value
  }
  return true
}
