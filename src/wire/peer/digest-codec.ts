/**
 * The groups that a peer may have missed ⇄ bytes, by hand: on a busy node it names as many groups as are
 * written to.
 *
 *   digest   15, or 25 for one that is not whole · after 8 · through 8 · asked 8 · count 4 · each group: length 2, position 8, the group
 */
import { writeCount } from '../../base/bytes.ts'
import type { GroupId, Position } from '../../base/ids.ts'
import type { Digest } from '../../replication/message.ts'
import type { ByteReader } from '../../base/byte-reader.ts'
import * as field from '../fields.ts'

/**
 * Two kinds: a node that does not know the second one refuses the frame, and takes no partial digest
 * for whole.
 */
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
export function readDigest(reader: ByteReader, isWhole: boolean): Digest {
  const after = reader.wide()
  const through = reader.wide()
  const asked = reader.wide()
  const groups: (readonly [GroupId, Position])[] = []
  for (let left = reader.uint32(); left > 0; left--) {
    const groupBytes = reader.uint16()
    const position = field.position(reader.wide())
    groups.push([field.group(reader.latin1(groupBytes)), position])
  }
  return { kind: 'digest', after, asked, through, isWhole, groups }
}
