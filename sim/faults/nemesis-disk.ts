/**
 * Faults of disks. The atlas decides which disk may be damaged, and how: a fault that it does not
 * allow is skipped.
 */
import { flushesFrom } from '../../src/journal/ordered-journal.ts'
import { present, unreachable } from '../../src/base/assert.ts'
import { fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { decodeFlush } from '../../src/log/flush.ts'
import {
  allGroups,
  allPositions,
  allStates,
  decodeStored,
  encodeState,
  positionBytes,
} from '../../src/store/row-format.ts'
import { hashBytes } from '../../src/store/group-hash.ts'
import { isUsedLog } from './atlas.ts'
import { parseGroupKey, rowIn } from '../checkers/data-disks.ts'
import type { LogDisk } from '../world/log-disk.ts'
import { hiddenEvery, type DiskFault, type DiskName, type Fault } from './fault.ts'
import type { Context, DiskImages, FaultOf, Victim } from './nemesis-context.ts'

const million = 1_000_000

export function strikeDisk(fault: DiskFault, context: Context): void {
  switch (fault.kind) {
    case 'slow-disk':
      return slow(fault, context)
    case 'slow-read':
      return slowRead(fault, context)
    case 'fsync-error':
      return fsyncError(fault, context)
    case 'no-space':
      return noSpace(fault, context)
    case 'torn-write':
      return tornWrite(fault, context)
    case 'bit-rot':
      return bitRot(fault, context)
    case 'journal-rot':
      return journalRot(fault, context)
    case 'misdirected-write':
      return misdirectedWrite(fault, context)
    case 'stale-disk':
      return staleDisk(fault, context)
    case 'empty-disk':
      return putDisks(fault, { log: new Map(), data: new Map() }, context)
    case 'swapped-disks':
      return swap(fault, context)
    default:
      return unreachable(fault)
  }
}

/** The disks are at full speed and accept every write; damaged records stay damaged. */
export function calmDisks({ disks }: Victim): void {
  for (const host of [disks.log, disks.data]) {
    host.slowDown(0)
    host.slowReads(0)
    host.decideFate(undefined)
    host.disk.failWrites('none')
    host.disk.failNextWrite('none')
  }
}

function slowRead(fault: FaultOf<'slow-read'>, context: Context): void {
  const victim = context.victim(fault.node)
  if (victim === undefined) return
  context.count(fault)
  const disk = victim.disks[fault.disk]
  disk.slowReads(fault.extraMicros)
  context.after(fault.lengthMicros, 'fast reads', () => {
    disk.slowReads(0)
  })
}

function slow(fault: FaultOf<'slow-disk'>, context: Context): void {
  const victim = context.victim(fault.node)
  if (victim === undefined) return
  context.count(fault)
  const setExtra = (extraMicros: number): void => {
    for (const host of [victim.disks.log, victim.disks.data]) host.slowDown(extraMicros)
  }
  setExtra(fault.extraMicros)
  context.after(fault.lengthMicros, 'fast disk', () => {
    setExtra(0)
  })
}

/** The node ends itself over it; the supervisor of nodes starts it again. */
function fsyncError(fault: FaultOf<'fsync-error'>, context: Context): void {
  const victim = context.standing(fault.node)
  if (victim === undefined) return
  context.atlas.refuse(fault.node)
  victim.disks[fault.disk].disk.failNextWrite('fsync-error')
  victim.onNextWrite(() => {
    context.count(fault)
  }, fault.disk)
}

function noSpace(fault: FaultOf<'no-space'>, context: Context): void {
  const victim = context.victim(fault.node)
  if (victim === undefined) return
  context.count(fault)
  context.atlas.refuse(fault.node)
  const { disk } = victim.disks[fault.disk]
  disk.failWrites('no-space')
  context.after(fault.lengthMicros, 'space again', () => {
    disk.failWrites('none')
  })
}

function tornWrite(fault: FaultOf<'torn-write'>, context: Context): void {
  const { node, downMicros, kept } = fault
  const victim = context.standing(node)
  if (victim === undefined) return
  victim.onNextWrite(() => {
    context.after(0, 'torn write', () => {
      const { log } = victim.disks
      if (!victim.isUp() || !log.disk.hasPending) return
      if (!log.disk.hidesTornWrites && !context.atlas.hurtLog(node)) return
      context.count(fault)
      log.decideFate({ kind: 'cut-short', kept })
      context.strikeDown(victim, downMicros)
    })
  }, 'log')
}

function bitRot(fault: FaultOf<'bit-rot'>, context: Context): void {
  const { node, disk: name, place, bit, isInValues = false } = fault
  const victim = context.victim(node)
  if (victim === undefined) return
  if (fault.inRows !== undefined) return hurtRow(fault, victim, context)
  if (name === 'data' && bit % hiddenEvery === 0) return hide(fault, victim, context)
  const { disk } = victim.disks[name]
  const key = isInValues ? keyAmong(keysWithValues(disk), place) : keyAt(disk, place)
  if (key === undefined || !mayHurt(node, name, context)) return
  const value = disk.durableValue(key) ?? new Uint8Array()
  const bits = 8 * (isInValues ? countValueBytes(value) : value.length)
  // The values of a flush stand at its end.
  const at = 8 * value.length - bits + (bit % bits)
  if (bits > 0 && disk.flipBit(fromLatin1(key), at)) countOn(fault, name, context)
}

function hurtHash(fault: FaultOf<'bit-rot'>, victim: Victim, context: Context): void {
  const { disk } = victim.disks.data
  const name = keyAmong(disk.durableKeys(allStates), fault.place)
  const stored = name === undefined ? undefined : decodeStored(fromLatin1(name), disk.durableValue(name) ?? new Uint8Array()) // prettier-ignore
  if (name === undefined || typeof stored !== 'object' || !mayHurt(fault.node, 'data', context)) {
    return
  }
  if (victim.isUp()) victim.crash()
  const { stamp, flush = 0, snapshot = 0, payload } = stored
  const hash = 'x'.repeat(hashBytes)
  const key = fromLatin1(name)
  disk.restore(
    new Map([...disk.image(), [name, encodeState(key, stamp, { flush, snapshot }, payload, hash)]]),
  )
  countOn(fault, 'data', context)
  victim.restart()
}

function hurtRow(fault: FaultOf<'bit-rot'>, victim: Victim, context: Context): void {
  if (fault.inRows === 'hash') return hurtHash(fault, victim, context)
  const { node, place, bit, inRows } = fault
  const { disk } = victim.disks.data
  const rows = disk.durableKeys(allGroups).filter((one) => rowIn(fromLatin1(one)) !== undefined)
  const name = keyAmong(rows, place)
  if (name === undefined || !mayHurt(node, 'data', context)) return
  const key = fromLatin1(name)
  const bits = 8 * (disk.durableValue(name)?.length ?? 0)
  if (inRows === 'lost') disk.dropKey(key, true)
  else disk.flipBit(key, bit % bits)
  context.coverage.count(inRows === 'lost' ? 'lost row' : 'bit-rot in a row')
  countOn(fault, 'data', context)
}

/** Only the next process learns which records were durable. */
function journalRot(fault: FaultOf<'journal-rot'>, context: Context): void {
  const { node, downMicros } = fault
  const victim = context.victim(node)
  if (victim === undefined || !context.atlas.hurtLog(node)) return
  if (victim.isUp()) victim.crash()
  const isRotten = victim.disks.log.disk.rot(fault)
  if (isRotten) context.count(fault)
  context.strikeDown(victim, downMicros)
  if (!isRotten || fault.diesMending !== true) return
  victim.onNextWrite(() => {
    context.after(0, 'crash in mending', () => {
      if (!victim.isUp()) return
      context.coverage.count('crash in mending')
      context.strikeDown(victim, downMicros)
    })
  }, 'log')
}

/**
 * A block of keys is damaged while its node is down, so that what was under them is not shown: what
 * the log says of all positions of a group, and in half of the cases the group's state record, too.
 */
function hide(fault: FaultOf<'bit-rot'>, victim: Victim, context: Context): void {
  const { node, place, bit } = fault
  const { disk } = victim.disks.data
  const stateKey = keyAmong(disk.durableKeys(allStates), place)
  if (stateKey === undefined || !mayHurt(node, 'data', context)) return
  const state = fromLatin1(stateKey)
  const group = parseGroupKey(state)?.group ?? ''
  const positions = disk.durableKeys(allPositions).map(fromLatin1)
  const hidden = positions.filter((key) => latin1(key).slice(4, -positionBytes) === group)
  if (bit % (2 * hiddenEvery) === 0) hidden.push(state)
  if (victim.isUp()) victim.crash()
  for (const key of hidden) disk.dropKey(key)
  countOn(fault, 'data', context)
  victim.restart()
}

function keysWithValues(disk: LogDisk): readonly string[] {
  return disk
    .durableKeys(flushesFrom(1))
    .filter((key) => countValueBytes(disk.durableValue(key)) > 0)
}

function countValueBytes(flush: Uint8Array | undefined): number {
  const records = (flush && decodeFlush(flush)?.records) ?? []
  return records.reduce((sum, { piece }) => sum + (piece?.length ?? 0), 0)
}

function misdirectedWrite(fault: FaultOf<'misdirected-write'>, context: Context): void {
  const { node, disk: name, from, to } = fault
  const victim = context.victim(node)
  if (victim === undefined) return
  const { disk } = victim.disks[name]
  const keys = [keyAt(disk, from), keyAt(disk, to)] as const
  if (keys[0] === undefined || keys[1] === undefined || keys[0] === keys[1]) return
  if (!mayHurt(node, name, context)) return
  if (disk.misdirect(fromLatin1(keys[0]), fromLatin1(keys[1]))) countOn(fault, name, context)
}

function mayHurt(node: string, disk: DiskName, { atlas }: Context): boolean {
  return disk === 'log' ? atlas.hurtLog(node) : atlas.hurtData(node)
}

/** Damage to a log and damage to the state derived from it are two kinds. */
function countOn(fault: Fault, disk: DiskName, { coverage }: Context): void {
  coverage.count(`${fault.name ?? fault.kind} ${disk}`)
}

function keyAt(disk: LogDisk, place: number): string | undefined {
  return keyAmong(disk.durableKeys({}), place)
}

function keyAmong(keys: readonly string[], place: number): string | undefined {
  return keys[Math.min(keys.length - 1, Math.floor((keys.length * place) / million))]
}

/** A disk of the past has to be kept when that past is the present. */
export function takeImages(fault: Fault, context: Context): void {
  if (fault.kind !== 'stale-disk') return
  const { world, after } = context
  after(fault.imageAtMicros - world.nowMicros, 'disk image', () => {
    const victim = context.victim(fault.node)
    if (victim === undefined || context.atlas.isSwapped(fault.node)) return
    // Damage of now would be damage there, too, when the atlas no longer knows of it.
    if (context.atlas.hasHurtData(fault.node) || !context.atlas.isSound(fault.node)) return
    const { log, data } = victim.disks
    context.images.set(fault, { log: log.disk.image(), data: data.disk.image() })
  })
}

function staleDisk(fault: FaultOf<'stale-disk'>, context: Context): void {
  const images = context.images.get(fault)
  if (images === undefined || !isUsedLog(images.log)) return
  putDisks(fault, images, context)
}

/** The node crashes, and starts on the disks of the images. Nothing happens where that must not be dealt to it. */
export function putDisks(
  fault: FaultOf<'stale-disk' | 'empty-disk'>,
  images: DiskImages,
  context: Context,
): void {
  const { node, disk, downMicros } = fault
  const { atlas } = context
  const victim = context.victim(node)
  if (victim === undefined || atlas.isSwapped(node)) return
  const mayDo = disk === 'both' ? atlas.forgetLog(node, images.log) : atlas.hurtData(node)
  if (!mayDo) return
  context.coverage.count(`${fault.name ?? fault.kind} ${disk}`)
  if (victim.isUp()) victim.crash()
  victim.disks.data.disk.restore(images.data)
  context.onDataReplaced(node)
  if (disk === 'data') atlas.exchangeData(node)
  else {
    victim.disks.log.disk.restore(images.log)
    context.onForgotten(node)
  }
  context.strikeDown(victim, downMicros)
}

function swap(fault: FaultOf<'swapped-disks'>, context: Context): void {
  const [a, b] = fault.nodes.map((node) => context.victim(node))
  if (a === undefined || b === undefined) return
  // A disk without an owner would accept any node.
  if (![a, b].every(({ disks }) => isUsedLog(disks.log.disk.image()))) return
  if (!context.atlas.swap(fault.nodes)) return
  context.count(fault)
  for (const victim of [a, b]) if (victim.isUp()) victim.crash()
  exchangeDisks(a, b)
  for (const victim of [a, b]) victim.restart()
  context.after(fault.lengthMicros, 'disks put right', () => {
    putDisksRight(context)
    for (const victim of [a, b]) victim.restart()
  })
}

/** Nodes that have each other's disks get their own. */
export function putDisksRight({ victims, atlas }: Context): void {
  const [a, b] = victims.filter((victim) => atlas.isSwapped(victim.name))
  if (a === undefined || b === undefined) return
  for (const victim of [a, b]) if (victim.isUp()) victim.crash()
  exchangeDisks(a, b)
  atlas.swapBack()
}

function exchangeDisks(a: Victim, b: Victim): void {
  for (const name of ['log', 'data'] as const) {
    const images = [a, b].map((victim) => victim.disks[name].disk.image())
    a.disks[name].disk.restore(present(images[1], 'nemesis: two images'))
    b.disks[name].disk.restore(present(images[0], 'nemesis: two images'))
  }
}
