/**
 * Names of things, as branded strings: the only file that casts to them, behind a check.
 */
import { assert } from './assert.ts'

declare const brand: unique symbol
type Brand<Name extends string> = string & { readonly [brand]: Name }

/** A node: one process of the cluster, named in its configuration. 1 to 32 of `a-z 0-9 -`. */
export type NodeId = Brand<'NodeId'>
/** A data folder's identity: a random UUID made once, when the folder is first used. */
export type StoreId = Brand<'StoreId'>
/** A cluster's identity, from the configuration. 1 to 64 of `a-z 0-9 -`. */
export type ClusterId = Brand<'ClusterId'>
/**
 * An entity group: the order-preserving encoding of its root key, one byte a character (latin1).
 * Compares like its bytes; `bytesOfGroup` gives these.
 */
export type GroupId = Brand<'GroupId'>

/** 1, 2, 3 … in a group's log; 0 stands for "before the first". */
export type Position = number
/** Microseconds since 1970, a safe integer. */
export type Timestamp = number

const nodePattern = /^[a-z0-9-]{1,32}$/
const clusterPattern = /^[a-z0-9-]{1,64}$/
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export function isNodeId(text: string): text is NodeId {
  return nodePattern.test(text)
}

export function isClusterId(text: string): text is ClusterId {
  return clusterPattern.test(text)
}

export function isStoreId(text: string): text is StoreId {
  return uuidPattern.test(text)
}

/** A lower-case UUID in its canonical text form. */
export function isUuid(text: string): boolean {
  return uuidPattern.test(text)
}

export function nodeId(text: string): NodeId {
  assert(isNodeId(text), 'ids: a node id is 1 to 32 of a-z 0-9 -')
  return text
}

export function clusterId(text: string): ClusterId {
  assert(isClusterId(text), 'ids: a cluster id is 1 to 64 of a-z 0-9 -')
  return text
}

export function storeId(text: string): StoreId {
  assert(isStoreId(text), 'ids: a store id is a UUID')
  return text
}

/** The group whose root key is encoded in `bytes` (1 to 1,024 of them). */
export function groupOfBytes(bytes: Uint8Array): GroupId {
  assert(bytes.length > 0 && bytes.length <= 1024, 'ids: a group id has 1 to 1,024 bytes')
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1') as GroupId
}

export function bytesOfGroup(group: GroupId): Uint8Array {
  return Buffer.from(group, 'latin1')
}
