/** Values that programs do not expect, and trees in which something stands that does not belong there. */
import type { SeededRandom } from '../../sim/world/random.ts'
import type { Packable } from '../../src/base/pack.ts'

export const texts: readonly string[] = [
  ...[
    '',
    ' ',
    'a',
    'A',
    '0',
    '-1',
    '1e3',
    '0x10',
    'null',
    'true',
    '__proto__',
    'constructor',
    'toString',
  ],
  ...[
    '\u0000',
    '\ud800',
    '😀',
    'a\u0000b',
    'é',
    '../..',
    '%00',
    '{}',
    '[',
    'x'.repeat(65),
    'x'.repeat(5_000),
  ],
  ...[
    '1500-01-01',
    '0000-12-31',
    '9999-12-31T23:59:59.999999Z',
    '1684-01-01',
    '2300-01-01T00:00:00Z',
  ],
  ...[
    '22222222-2222-4222-8222-222222222221',
    '22222222-2222-4222-8222-22222222222',
    'BASE',
    'fuzz',
  ],
  ...['99999999999999999999999999', '9007199254740993', '1.5', 'NaN', 'Infinity', '2026-02-30'],
]

export const numbers: readonly number[] = [
  ...[0, -0, 1, -1, 0.5, 255, 256, 4_095, 4_096, 65_536, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), 2 ** 32],
  ...[
    2 ** 53 - 1,
    2 ** 53,
    -(2 ** 53),
    1e300,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.MIN_VALUE,
  ],
  ...[-62_135_596_800_000_000, 2.5e17, 1_767_225_600_000_000],
]

/** Of JSON and MessagePack alike, `depth` lists or objects deep at most. */
export function drawValue(random: SeededRandom, depth = 3): Packable {
  switch (random.int(0, depth > 0 ? 11 : 8)) {
    case 0:
      return null
    case 1:
      return random.chance(500_000)
    case 2:
    case 3:
      return random.pick(numbers)
    case 4:
      return random.int(-1_000, 1_000)
    case 5:
    case 6:
      return random.pick(texts)
    case 7:
      return undefined
    case 8:
      return random.pick(texts) + random.pick(texts)
    case 9:
      return Array.from({ length: random.int(0, 4) }, () => drawValue(random, depth - 1))
    case 10: {
      const names = Array.from({ length: random.int(0, 4) }, () => random.pick(texts))
      return Object.fromEntries(names.map((name) => [name, drawValue(random, depth - 1)]))
    }
    default:
      return deep(random.pick([2, 60, 70, 400]))
  }
}

function deep(levels: number): Packable {
  let value: Packable = 1
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { a: value }
  return value
}

/** The same tree, with another value in one place, or one more, or one less. */
export function mutated(random: SeededRandom, tree: Packable, draw: () => Packable): Packable {
  if (!isList(tree) || tree.length === 0 || random.chance(150_000)) return draw()
  const list = [...tree]
  const at = random.int(0, list.length - 1)
  switch (random.int(0, 9)) {
    case 0:
      list.splice(at, 1)
      break
    case 1:
      list.splice(at, 0, draw())
      break
    default:
      list[at] = mutated(random, list[at], draw)
  }
  return list
}

export function isList(value: Packable): value is readonly Packable[] {
  return Array.isArray(value)
}
