/** Reads the keys of the data store: the other way round of `row-format.ts`, which makes them. */
import { latin1 } from '../base/bytes.ts'
import { groupOfBytes, type GroupId, type Position, type Timestamp } from '../base/ids.ts'
import { findTopicText } from '../group/worklist-key.ts'
import { decodeVersionKey, positionBytes } from './row-format.ts'

export type StoreKey =
  | { readonly kind: 'row'; readonly group: GroupId; readonly key: Uint8Array }
  | {
      /** A version that was superseded. */
      readonly kind: 'history'
      readonly group: GroupId
      readonly key: Uint8Array
      readonly start: Timestamp
    }
  | { readonly kind: 'state'; readonly group: GroupId }
  /** A part of a snapshot that is on its way here; how far that has come. */
  | { readonly kind: 'staged' | 'staging'; readonly group: GroupId }
  /** `topic`: the prefix of its keys, as latin1. */
  | { readonly kind: 'worklist'; readonly topic: string; readonly group: GroupId }
  | { readonly kind: 'marker'; readonly slot: number }
  | { readonly kind: 'position'; readonly group: GroupId; readonly position: Position }
  | { readonly kind: 'name'; readonly name: string }

const groupBytesMax = 1024
const rowSubspace = 1
const historySubspace = 2
const versionBytesMin = 10
const markerBytes = 3
const positionPrefix = 'at/'

/** Undefined: no such key is ever written. */
export function decodeStoreKey(bytes: Uint8Array): StoreKey | undefined {
  switch (String.fromCharCode(bytes[0] ?? 0)) {
    case 'b':
      return decodeMarker(bytes)
    case 'g':
      return decodeRow(bytes)
    case 'i':
      return decodeStaged(bytes)
    case 'j':
      return decodeState(bytes, 'staging')
    case 'l':
      return decodeListed(latin1(bytes.subarray(1)))
    case 'm':
      return decodeName(bytes.subarray(1))
    case 's':
      return decodeState(bytes)
    default:
      return undefined
  }
}

function decodeMarker(bytes: Uint8Array): StoreKey | undefined {
  if (bytes.length !== markerBytes) return undefined
  const [, high = 0, low = 0] = bytes
  return { kind: 'marker', slot: high * 256 + low }
}

function decodeRow(bytes: Uint8Array): StoreKey | undefined {
  const opening = readGroup(bytes)
  if (opening === undefined) return undefined
  const { group, end } = opening
  const rest = bytes.subarray(end + 1)
  if (bytes[end] === rowSubspace) return { kind: 'row', group, key: rest }
  if (bytes[end] !== historySubspace || rest.length < versionBytesMin) return undefined
  return { kind: 'history', group, ...decodeVersionKey(rest) }
}

function decodeStaged(bytes: Uint8Array): StoreKey | undefined {
  const row = decodeRow(bytes)
  if (row?.kind !== 'row' && row?.kind !== 'history') return undefined
  return { kind: 'staged', group: row.group }
}

function decodeState(bytes: Uint8Array, kind: 'state' | 'staging' = 'state'): StoreKey | undefined {
  const opening = readGroup(bytes)
  return opening?.end === bytes.length ? { kind, group: opening.group } : undefined
}

/** The group behind the first byte, and where what follows it begins. */
function readGroup(
  bytes: Uint8Array,
): { readonly group: GroupId; readonly end: number } | undefined {
  const name: number[] = []
  for (let at = 1; at + 1 < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if (byte !== 0) name.push(byte)
    else if (bytes[at + 1] === 0xff) {
      name.push(0)
      at += 1
    } else if (bytes[at + 1] === 1) {
      const group = groupIn(Uint8Array.from(name))
      return group && { group, end: at + 2 }
    } else return undefined
  }
  return undefined
}

function decodeListed(text: string): StoreKey | undefined {
  const topic = findTopicText(text)
  if (topic === undefined) return undefined
  const group = groupIn(Buffer.from(text.slice(topic.length), 'latin1'))
  return group && { kind: 'worklist', topic, group }
}

function decodeName(rest: Uint8Array): StoreKey | undefined {
  const name = latin1(rest)
  if (!name.startsWith(positionPrefix)) return { kind: 'name', name }
  const end = rest.length - positionBytes
  const group = groupIn(rest.subarray(positionPrefix.length, Math.max(positionPrefix.length, end)))
  const position = rest.subarray(end).reduce((sum, byte) => sum * 256 + byte, 0)
  return group && { kind: 'position', group, position }
}

function groupIn(bytes: Uint8Array): GroupId | undefined {
  const isGroup = bytes.length > 0 && bytes.length <= groupBytesMax
  return isGroup ? groupOfBytes(bytes) : undefined
}
