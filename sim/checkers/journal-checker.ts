/**
 * LOG-13: a node that serves with a log whose journal had rotted has its last flush, remembers of
 * each peer what it remembered, or that it has to be told, and keeps in its log that something was
 * found.
 */
import { flushesFrom, numberOfKey, recordKey } from '../../src/journal/ordered-journal.ts'
import { fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { damagesName, decodeDamages, type LogDamage } from '../../src/log/log-mending.ts'
import { decodeMemory, memoryName } from '../../src/log/peer-memory.ts'
import type { DiskImage } from '../world/disk.ts'
import type { LogDisk } from '../world/log-disk.ts'
import type { Referee } from './referee.ts'

/** The node is open, and has found nothing wrong that would keep it from serving. */
export function checkMended(node: string, log: LogDisk, referee: Referee): void {
  const before = log.takeUndamaged()
  if (before === undefined) return
  const now = log.image()
  const check = (holds: boolean, sentence: string): void => {
    referee.check(holds, 'LOG-13', sentence, () => ({ node }))
  }
  check(readDamages(now).length > 0, 'A log does not keep that its journal was damaged.')
  check(lastFlushIn(now) >= lastFlushIn(before), 'A log is used that has lost its last flushes.')
  const isToldAnew = readDamages(now).at(-1)?.isMemoryLost === true
  check(
    isToldAnew || !isOlder(now, before),
    'A node goes by an older memory of its peers than it had.',
  )
}

function readDamages(image: DiskImage): readonly LogDamage[] {
  const value = image.get(latin1(recordKey(damagesName)))
  return (value && decodeDamages(value)) ?? []
}

function lastFlushIn(image: DiskImage): number {
  const { gte, lt } = flushesFrom(1)
  const keys = [...image.keys()].filter((key) => key >= latin1(gte) && key < latin1(lt))
  return Math.max(0, ...keys.map((key) => numberOfKey(fromLatin1(key)) ?? 0))
}

function isOlder(now: DiskImage, before: DiskImage): boolean {
  const own = memoryIn(now)
  if (own === undefined) return false
  return (
    memoryIn(before)?.some((one) => {
      const known = own.find(({ node }) => node === one.node)
      return known === undefined || known.durableFlush < one.durableFlush
    }) === true
  )
}

function memoryIn(image: DiskImage): ReturnType<typeof decodeMemory> {
  const value = image.get(latin1(recordKey(memoryName)))
  return value && decodeMemory(value)
}
