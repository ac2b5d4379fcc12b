/** Damage of a store's files: a flipped bit, or a missing end. */
import { open, readdir, readFile, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { BenchError } from '../common.ts'

/** Files with the records of a store: tables and journals of LevelDB, segments. */
const tables = /^\d+\.ldb$/
const journals = /^\d+\.(?:log|segment)$/

const flippedBit = 0x10

export async function hasTables(folder: string): Promise<boolean> {
  return (await readdir(folder)).some((name) => tables.test(name))
}

/** The largest table of a store, or its newest journal. A log of segments has journals alone. */
export async function pickFile(folder: string, kind: 'table' | 'journal'): Promise<string> {
  const names = await readdir(folder)
  const ofKind = names.filter((name) => (kind === 'table' ? tables : journals).test(name))
  const fitting = ofKind.length > 0 ? ofKind : names.filter((name) => journals.test(name))
  const files = await Promise.all(
    fitting.map(async (name) => ({ name, size: (await stat(join(folder, name))).size })),
  )
  const [first] = files
    .filter(({ size }) => size > 0)
    .toSorted((a, b) => (kind === 'table' ? b.size - a.size : 0) || (a.name < b.name ? 1 : -1))
  if (first === undefined) throw new BenchError(`${folder} has no ${kind} yet: give more --rows`)
  return join(folder, first.name)
}

/**
 * In place: a process that has the file open reads the damaged byte. `part`: the place among the bytes written to the file,
 * from 0 and below 1. Gives the damage in words.
 */
export async function flipBit(file: string, part: number): Promise<string> {
  const at = Math.floor((await writtenBytes(file)) * part)
  const opened = await open(file, 'r+')
  try {
    const byte = Buffer.alloc(1)
    await opened.read(byte, 0, 1, at)
    await opened.write(Uint8Array.of((byte[0] ?? 0) ^ flippedBit), 0, 1, at)
  } finally {
    await opened.close()
  }
  return `a bit of byte ${at} is flipped`
}

/** `part`: of the bytes written to the file, those that stay. */
export async function cutOff(file: string, part: number): Promise<string> {
  const { size } = await stat(file)
  const kept = Math.floor((await writtenBytes(file)) * part)
  await truncate(file, kept)
  return `cut from ${size} to ${kept} bytes`
}

/** A segment is as long as it may become from the beginning on: its end is zeros. */
async function writtenBytes(file: string): Promise<number> {
  const bytes = await readFile(file)
  let length = bytes.length
  while (length > 0 && bytes[length - 1] === 0) length -= 1
  return length
}
