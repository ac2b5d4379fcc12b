/** A call refuses in words any argument that it does not understand, and throws no TypeError. */
import { expect, test } from 'vitest'
import { isPlain, wordsFor } from '../../src/base/words.ts'
import { StoreError } from '../../src/base/errors.ts'
import { asPromise } from '../../src/base/as-promise.ts'
import { settled } from '../cells/kit.ts'
import { createCluster } from './cluster.ts'
import { knownCalls, openPhotos, type KnownCall, type On } from './known-calls.ts'

class Shape {
  readonly size = 1
}

/** Whether a place or an option takes a value; nothing can be asked of a proxy that was revoked. */
function isTaken(takes: (value: unknown) => boolean, value: unknown): boolean {
  try {
    return takes(value)
  } catch {
    return false
  }
}

/** No options. */
function isNothing(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return isPlain(value) && isTaken(() => Reflect.ownKeys(value).length === 0, value)
}

/** An object that its maker has revoked. */
function revoked<Of extends object>(target: Of): Of {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

/** Its bytes went to another thread. */
function detached(): Uint8Array {
  const bytes = new Uint8Array(8)
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
  return bytes
}

function throwing(): never {
  throw new Error('boom')
}

const oddValues: readonly unknown[] = [
  new Proxy({}, { get: throwing, ownKeys: throwing, has: throwing }),
  Object.defineProperty({}, 'x', { enumerable: true, get: throwing }),
  ...[{ [Symbol.toStringTag]: 'Date' }, Object.create(AbortSignal.prototype)],
  ...[revoked({}), revoked([]), revoked(() => 1), [revoked({})], detached(), detached().buffer],
  ...[{ [Symbol('x')]: 1 }, Object.defineProperty({}, 'x', { value: 1 })],
  ...[null, Number.NaN, Number.POSITIVE_INFINITY, -1, 0.5, 5, '', 'x', '7', true],
  ...[[], [null], {}, { x: 1 }, () => 1, 7n, Symbol('x'), new Map(), new Shape(), new Date(NaN)],
  ...[Promise.resolve({}), Object.create(null), [undefined], '22222222'],
]

function createCase() {
  const cluster = createCluster()
  const { random, world } = cluster.bench
  const client = cluster.client()
  const { clock } = cluster.clockOf('tables')
  const db = openPhotos(client, { clock, random })
  /** The code of what it is refused with; 'done' when it is not. */
  const said = async (known: KnownCall, given: readonly unknown[]): Promise<string> => {
    const on: On = { client, db }
    try {
      await settled(
        world,
        asPromise(async () => known.make(on, given)),
      )
      return 'done'
    } catch (error) {
      if (!(error instanceof StoreError)) return String(error)
      expect(error.message.length, error.message).toBeGreaterThan(10)
      return error.code
    }
  }
  return { cluster, said }
}

test.each(knownCalls.map((known) => [known.name, known] as const))(
  '%s refuses options that it does not know, or that are none',
  async (_, known) => {
    const { optionsAt, options, given } = known
    if (optionsAt === undefined) return
    const { said } = createCase()
    const right = given[optionsAt]
    const whole = typeof right === 'object' ? { ...right } : {}
    const withOptions = (one: unknown): readonly unknown[] => given.toSpliced(optionsAt, 1, one)
    const wrong: string[] = []
    for (const one of oddValues) {
      // Milliseconds alone may stand for the options of a status.
      if (isNothing(one) || (known.name === 'client.status' && one === 5)) continue
      const code = await said(known, withOptions(one))
      if (code !== 'invalid') wrong.push(`options ${wordsFor(one)}: ${code}`)
    }
    const misspelt = [...Object.keys(options).map((name) => `${name}s`), 'nothing', '__proto__']
    for (const name of misspelt.filter((one) => !Object.hasOwn(options, one))) {
      const strange = { ...whole }
      Object.defineProperty(strange, name, { value: 1, enumerable: true })
      const code = await said(known, withOptions(strange))
      if (code !== 'invalid') wrong.push(`${name}: ${code}`)
    }
    for (const [name, takes] of Object.entries(options)) {
      for (const one of oddValues) {
        if (isTaken(takes, one)) continue
        const code = await said(known, withOptions({ ...whole, [name]: one }))
        if (code !== 'invalid' && code !== 'too-large')
          wrong.push(`${name}: ${wordsFor(one)}: ${code}`)
      }
    }
    expect(wrong).toEqual([])
  },
)

test.each(knownCalls.map((known) => [known.name, known] as const))(
  '%s refuses arguments that are none of its own',
  async (_, known) => {
    const { said } = createCase()
    const wrong: string[] = []
    for (const [place, takes] of known.places.entries()) {
      for (const one of [undefined, ...oddValues]) {
        if (isTaken(takes, one)) continue
        // Members that may be left out.
        const isOptional = ['client.status', 'client.rejected', 'letters.redriveAll']
        if (one === undefined && isOptional.includes(known.name)) continue
        const code = await said(known, known.given.toSpliced(place, 1, one))
        if (code !== 'invalid') wrong.push(`place ${place}: ${wordsFor(one)}: ${code}`)
      }
    }
    expect(wrong).toEqual([])
  },
)
