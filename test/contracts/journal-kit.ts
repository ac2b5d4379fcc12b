/** Journals that tests open, close and open again, and their flushes, as text. */
import { expect, onTestFinished } from 'vitest'
import type { Journal, JournalFlush, JournalRecord } from '../../src/ports/journal.ts'

/** A place that keeps what is written to it while journals come and go. */
export interface JournalPlace {
  /** Opens the journal; the one before has been closed, or crashed. */
  open(): Promise<Journal>
  /**
   * The process dies while calls are under way. `draw`: from 0 below 2^30, decides what the disk has of them. Absent: this
   * place cannot crash.
   */
  crash?(draw: number): void
  remove(): Promise<void>
}

export function bytesOf(text: string): Buffer {
  return Buffer.from(text)
}

export function flushOf(number: number, text = `flush ${number}`): JournalFlush {
  return { number, bytes: bytesOf(text) }
}

export function recordOf(name: string, text: string): JournalRecord {
  return { name, value: bytesOf(text) }
}

export function textOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes && Buffer.from(bytes).toString()
}

/** Flushes from a number on, as texts by number. */
export async function flushesIn(journal: Journal, from = 1): Promise<Map<number, string>> {
  const found = new Map<number, string>()
  for await (const flushes of journal.scan(from)) {
    expect(flushes.length).toBeGreaterThan(0)
    for (const { number, bytes } of flushes) {
      expect(number).toBeGreaterThan(Math.max(from - 1, ...found.keys()))
      found.set(number, Buffer.from(bytes).toString())
    }
  }
  return found
}

export async function appendAll(journal: Journal, from: number, to: number): Promise<void> {
  for (let number = from; number <= to; number++) await journal.append(flushOf(number))
}

export interface Opened {
  readonly journal: Journal
  reopen(): Promise<Journal>
}

export async function openAt(place: JournalPlace): Promise<Opened> {
  let opened = await place.open()
  onTestFinished(async () => {
    await opened.close()
    await place.remove()
  })
  const reopen = async (): Promise<Journal> => {
    await opened.close()
    opened = await place.open()
    return opened
  }
  return { journal: opened, reopen }
}

/** A check that holds of a journal holds again when it is reopened. */
export async function checkTwice(
  { journal, reopen }: Opened,
  check: (journal: Journal) => Promise<void> | void,
): Promise<void> {
  await check(journal)
  await check(await reopen())
}
