/** The formats of earlier builds: flushes that do not name the ones before, and a row for each position. */
import { crc32 } from '../../src/base/bytes.ts'
import { pack } from '../../src/base/pack.ts'
import { bytesOfGroup, type GroupId, type Position } from '../../src/base/ids.ts'
import type { Ballot } from '../../src/paxos/ballot.ts'
import { encodeFlush, type FlushStamp } from '../../src/log/flush.ts'
import type { PositionRow } from '../../src/log/settled.ts'
import type { LogRecord } from '../../src/replication/effect.ts'
import { positionKey } from '../../src/store/row-format.ts'
import type { FakeData } from './log-fixture.ts'

/** A flush of format 1, and its checksum. */
export function encodeOldFlush(
  stamp: FlushStamp,
  records: readonly LogRecord[],
): { readonly bytes: Buffer; readonly crc: number } {
  const groups = [...new Set(records.map(({ group }) => group))]
  const groupNumbers = records.map(({ group }) => groups.indexOf(group))
  const { bytes } = encodeFlush(stamp, { records, groupNumbers, previous: groups.map(() => 0) })
  const cut = groups.length * 8
  const parts = [bytes.subarray(0, 37)]
  let at = 37
  for (const group of groups) {
    parts.push(bytes.subarray(at, at + 2 + group.length))
    at += 2 + group.length + 8
  }
  parts.push(bytes.subarray(at))
  const old = Buffer.concat(parts)
  old.writeUInt8(1, 0)
  const headerBytes = old.readUInt32BE(33) - cut
  old.writeUInt32BE(headerBytes, 33)
  for (let index = 0; index < records.length; index++) {
    const place = headerBytes - 4 - (records.length - index) * 29 + 17
    old.writeUInt32BE(old.readUInt32BE(place) - cut, place)
  }
  const crc = crc32(old.subarray(0, headerBytes - 4))
  old.writeUInt32BE(crc, headerBytes - 4)
  return { bytes: old, crc }
}

/** The layout stands in `src/log/settled.ts`. */
export function encodeOldRow(row: PositionRow): Buffer {
  const { promised, accepted, chosen, place, lastFlush } = row
  const ballots = [...new Set([promised, accepted, chosen])].filter((one) => one !== undefined)
  const numberOf = (one: Ballot | undefined): number =>
    one === undefined ? 0xff : ballots.indexOf(one)
  const head = Buffer.alloc(24)
  head.writeUInt8(2, 0)
  head.writeBigUInt64BE(BigInt(lastFlush), 1)
  const isPlaced = typeof place === 'object'
  head.writeBigUInt64BE(BigInt(isPlaced ? place.flush : 0), 9)
  const missing = place === 'faulty' ? 0xfffffffe : 0xffffffff
  head.writeUInt32BE(isPlaced ? place.index : missing, 17)
  head.set([promised, accepted, chosen].map(numberOf), 21)
  const tables = ballots.map(({ round, incarnation, node: name }) => {
    const bytes = Buffer.alloc(17)
    bytes.writeBigUInt64BE(BigInt(round), 0)
    bytes.writeBigUInt64BE(BigInt(incarnation), 8)
    bytes.writeUInt8(name.length, 16)
    return Buffer.concat([bytes, Buffer.from(name)])
  })
  return Buffer.concat([head, ...tables])
}

export function keepOldRow(
  data: FakeData,
  name: GroupId,
  position: Position,
  row: PositionRow,
): void {
  data.setRow(positionKey(name, position), encodeOldRow(row))
}

export function keepCarried(
  data: FakeData,
  carried: readonly (readonly [GroupId, Position])[],
): void {
  const list = carried.map(([name, position]) => [bytesOfGroup(name), position])
  data.setMeta('log/carried', pack([1, ...list]))
}
