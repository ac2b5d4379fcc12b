/**
 * What a peer may have missed ⇄ bytes, by hand: on a busy node it names as many groups as are written to.
 *
 *   digest   15, or 25 for one that is not whole · after 8 · through 8 · asked 8 · count 4 · each group: length 2, position 8, the group
 */
import { readCount, writeCount } from '../../base/bytes.ts'
import type { GroupId, Position } from '../../base/ids.ts'
import type { Digest } from '../../replication/message.ts'
import type { FrameCursor } from './frame-cursor.ts'
import * as field from '../fields.ts'

/** By two kinds: who does not know the second one refuses the frame, and takes nothing for whole. */
export const digestKinds = { whole: 15, partial: 25 } as const
const headBytes = 29
const groupHeadBytes = 10

export function digestBytes({ groups }: Digest): number {
  let bytes = headBytes
  for (const [group] of groups) bytes += groupHeadBytes + group.length
  return bytes
}

/** Returns where the next message begins. */
export function writeDigest(
  bytes: Buffer,
  { after, through, isWhole, asked, groups }: Digest,
  start: number,
): number {
  bytes.writeUInt8(isWhole ? digestKinds.whole : digestKinds.partial, start)
  writeCount(bytes, after, start + 1)
  writeCount(bytes, through, start + 9)
  writeCount(bytes, asked, start + 17)
  bytes.writeUInt32BE(groups.length, start + 25)
  let at = start + headBytes
  for (const [group, position] of groups) {
    bytes.writeUInt16BE(group.length, at)
    writeCount(bytes, position, at + 2)
    at += groupHeadBytes
    at += bytes.write(group, at, 'latin1')
  }
  return at
}

/** The one that begins behind its kind, which says whether it is whole. */
export function readDigest(cursor: FrameCursor, isWhole: boolean): Digest {
  const { bytes } = cursor
  const start = cursor.take(headBytes - 1)
  const after = field.count(readCount(bytes, start), 'after')
  const through = field.count(readCount(bytes, start + 8), 'through')
  const asked = field.count(readCount(bytes, start + 16), 'asked')
  const groups: (readonly [GroupId, Position])[] = []
  for (let left = bytes.readUInt32BE(start + 24); left > 0; left--) {
    const at = cursor.take(groupHeadBytes)
    const position = field.position(readCount(bytes, at + 2))
    const groupAt = cursor.take(bytes.readUInt16BE(at))
    groups.push([field.group(bytes.toString('latin1', groupAt, cursor.at)), position])
  }
  return { kind: 'digest', after, asked, through, isWhole, groups }
}
