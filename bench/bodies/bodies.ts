/**
 * Measures what packing bodies costs and saves, on real rows: for bodies of one row and of more, the bytes
 * that are left and the time that one body takes, both ways. Codecs take turns, so that a slow moment of the
 * machine meets them all.
 */
import { packBody } from '../../src/cells/body.ts'
import { present } from '../../src/base/assert.ts'
import type { Json } from '../../src/cells/body.ts'
import { pack } from '../../src/base/pack.ts'
import { machine, type Machine } from '../common.ts'
import { codecs, type Codec } from './codecs.ts'
import { readDataSet, type DataSet } from './data.ts'

export interface BodiesOptions {
  readonly files: readonly string[]
  readonly rounds: number
}

export interface CodecFigures {
  readonly codec: string
  /** The share of each byte that is left. */
  readonly ratio: number
  readonly packMicros: number
  readonly unpackMicros: number
}

export interface SizeFigures {
  readonly rowsPerBody: number
  readonly bodies: number
  /** As MessagePack. */
  readonly meanBytes: number
  /** To make the canonical text of a body, and its hash: what every put costs anyway. */
  readonly checkMicros: number
  readonly codecs: readonly CodecFigures[]
}

export interface BodiesReport {
  readonly bench: 'bodies'
  readonly machine: Machine
  readonly node: string
  readonly rounds: number
  readonly sets: readonly { readonly name: string; readonly sizes: readonly SizeFigures[] }[]
}

const rowsMax = 4_096
const rowsPerBody = [1, 2, 4, 8, 16, 64, 256, 1024]
/** Of one size, together. */
const bytesMax = 1024 * 1024
const bodiesMax = 500

export async function benchBodies(options: BodiesOptions): Promise<BodiesReport> {
  const sets: { readonly name: string; readonly sizes: readonly SizeFigures[] }[] = []
  for (const file of options.files) {
    const set = await readDataSet(file, rowsMax)
    const sizes = rowsPerBody
      .filter((rows) => rows <= set.rows.length)
      .map((rows) => measure(buildBodies(set, rows), rows, options.rounds))
    sets.push({ name: set.name, sizes })
  }
  const { version } = process
  return { bench: 'bodies', machine: machine(), node: version, rounds: options.rounds, sets }
}

/** Bodies of `each` rows, as many as there are and fit the measurement. */
function buildBodies({ rows }: DataSet, each: number): readonly Json[] {
  const bodies: Json[] = []
  let bytes = 0
  for (let at = 0; at + each <= rows.length && bodies.length < bodiesMax; at += each) {
    const body = each === 1 ? present(rows[at], 'bodies: a row') : rows.slice(at, at + each)
    bytes += pack(body).length
    if (bodies.length > 0 && bytes > bytesMax) break
    bodies.push(body)
  }
  return bodies
}

/** Of each round. */
interface Times {
  readonly pack: number[]
  readonly unpack: number[]
}

function measure(bodies: readonly Json[], each: number, rounds: number): SizeFigures {
  const packed = bodies.map((body) => pack(body))
  const bytes = sum(packed.map(({ length }) => length))
  const times = codecs.map((): Times => ({ pack: [], unpack: [] }))
  const kept = codecs.map((codec) => packed.map((one) => codec.pack(one)))
  const checks: number[] = []
  for (let round = 0; round < rounds; round++) {
    for (const [i, codec] of codecs.entries()) {
      const time = present(times[i], 'bodies: a codec')
      time.pack.push(timed(() => void packed.map((one) => codec.pack(one))))
      time.unpack.push(timed(() => unpackAll(codec, kept[i] ?? [])))
    }
    checks.push(timed(() => void bodies.map((body) => packBody(body))))
  }
  const perBody = (all: readonly number[]): number => rounded(middle(all) / bodies.length, 1)
  return {
    rowsPerBody: each,
    bodies: bodies.length,
    meanBytes: Math.round(bytes / bodies.length),
    checkMicros: perBody(checks),
    codecs: codecs.map(({ name }, i) => ({
      codec: name,
      ratio: rounded(sum((kept[i] ?? []).map(({ length }) => length)) / bytes, 3),
      packMicros: perBody(times[i]?.pack ?? []),
      unpackMicros: perBody(times[i]?.unpack ?? []),
    })),
  }
}

function unpackAll(codec: Codec, all: readonly Uint8Array[]): void {
  for (const one of all) codec.unpack(one)
}

/** In microseconds. */
function timed(work: () => void): number {
  const start = performance.now()
  work()
  return (performance.now() - start) * 1000
}

function sum(values: readonly number[]): number {
  return values.reduce((all, one) => all + one, 0)
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits))
}

/** A table for each data set. */
export function describeBodies(report: BodiesReport): string {
  const lines = [`${report.machine.model}, Node.js ${report.node}, ${report.rounds} rounds`]
  for (const { name, sizes } of report.sets) {
    for (const { rowsPerBody: rows, meanBytes, bodies, checkMicros, codecs: figures } of sizes) {
      lines.push('', `${name}: ${rows} rows a body, ${meanBytes} bytes, ${bodies} bodies`)
      lines.push(`  text, hash and packing: ${checkMicros} µs`)
      for (const { codec, ratio, packMicros, unpackMicros } of figures) {
        const left = `${(ratio * 100).toFixed(1)} %`.padStart(8)
        const there = `${packMicros} µs`.padStart(12)
        const back = `${unpackMicros} µs`.padStart(12)
        lines.push(`  ${codec.padEnd(24)}${left}${there}${back}`)
      }
    }
  }
  return `${lines.join('\n')}\n`
}
