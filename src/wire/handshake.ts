/**
 * The handshake that opens every link, pure: what each side says, checks and proves.
 *
 *   dialer → listener   hello    who I am: role, cluster, node, protocol range, a nonce
 *   listener → dialer   hello    the same
 *   dialer → listener   proof    HMAC-SHA256 over both hellos under the secret of the dialer's role
 *   listener → dialer   tell     what my store says, with an HMAC over it and both hellos: its proof, too
 *   dialer → listener   tell     the same of the dialer, once it has checked the listener's
 *   listener → dialer   welcome  the link is up; frames may follow
 *   either way          refuse   why not; the link ends
 *
 * The listener proves nothing to a stranger: who only connects gets nothing to try secrets on. Nothing
 * the other side says is used before its proof: a refusal least of all, since the driver may end the node
 * for it. A proof names the side it comes from, so that no machine between two sides can hand one of them
 * its own. Who changes bytes on the way of a true link is kept out by TLS, not here.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { readVersions } from '../base/cluster-version.ts'
import { isNodeId, type NodeId } from '../base/ids.ts'
import { nodeCountMax, nodeUrlCharsMax } from '../base/limits.ts'
import { pack, unpack, type Packable } from '../base/pack.ts'
import { decodeRemembered, encodeRemembered } from '../base/remembered.ts'
import type { LinkInfo } from '../ports/transport.ts'
import { isAbsent, isCount } from './fields.ts'

/** The protocol versions this build speaks. 4: the dialer proves itself first. 5: peers tell of their lists of nodes. 6: peers send snapshots. */
export const protocolMin = 6
export const protocolMax = 6

export const nonceBytes = 16
/** All that a side says before it has proven itself stays below this, its one word or several. */
export const handshakeBytesMax = 4096
/** Of what a peer tells of its list of nodes, characters. */
const nodesCharsMax = 64
/** Of a refusal's reason, characters. */
export const reasonCharsMax = 500

export type Role = 'peer' | 'node' | 'client'
export type Side = 'dialer' | 'listener'

export interface Hello {
  /** Which end of the connection says this. */
  readonly side: Side
  /** `peer` on links between nodes; on client links `node` and `client`. */
  readonly role: Role
  readonly protocolMin: number
  readonly protocolMax: number
  /** Empty from a client that does not care which cluster it talks to. */
  readonly cluster: string
  /** Empty from a client. */
  readonly node: string
  readonly nonce: Uint8Array
}

/** A side that has proven itself, with what it told of itself. */
export interface Met extends Hello {
  readonly info: LinkInfo
}

/** The facts that a side tells of itself, and its proof of them. */
export interface Told {
  readonly info: LinkInfo
  /** Over the facts that every build of this protocol knows of. */
  readonly mac: Uint8Array
  readonly later?: Later
}

/** The facts among these that earlier builds do not know: they stand apart, so that such a build passes over them. */
export interface Later {
  /** As they are packed. A later build may tell more in them than this one reads. */
  readonly bytes: Uint8Array
  /** Over all facts of the tell. */
  readonly mac: Uint8Array
}

export type HandshakeMessage =
  | { readonly kind: 'hello'; readonly hello: Hello }
  | { readonly kind: 'proof'; readonly mac: Uint8Array }
  | ({ readonly kind: 'tell' } & Told)
  | { readonly kind: 'welcome' }
  | { readonly kind: 'refuse'; readonly reason: string }

const messageFormat = 1
const roles: readonly string[] = ['peer', 'node', 'client'] satisfies Role[]

export function encodeHandshake(message: HandshakeMessage): Uint8Array {
  switch (message.kind) {
    case 'hello': {
      const { side, role, cluster, node, nonce } = message.hello
      const range = [message.hello.protocolMin, message.hello.protocolMax]
      // Up to version 3 the store's words stood last: such a side reads on, and says what differs.
      return pack([messageFormat, 'hello', side, role, range, cluster, node, nonce, []])
    }
    case 'proof':
      return pack([messageFormat, 'proof', message.mac])
    case 'tell': {
      const { info, mac, later } = message
      const more = later === undefined ? [] : [later.bytes, later.mac]
      return pack([messageFormat, 'tell', encodeFields(info), mac, ...more])
    }
    case 'welcome':
      return pack([messageFormat, 'welcome'])
    case 'refuse':
      return pack([messageFormat, 'refuse', message.reason])
  }
}

/** All facts but the later ones: a side computes the HMAC over those that it has read, so there may be no more of them. */
function encodeFields(info: LinkInfo): Packable[] {
  const { storeId, incarnation, durableFlush, run, known, nodes, knowsLogEnds, compares } = info
  const told = [storeId, incarnation, durableFlush, run, known?.map(encodeRemembered), nodes]
  const ends = knowsLogEnds === true || undefined
  if (compares === true) return [...told, ends, true]
  return ends === undefined ? told : [...told, ends]
}

const laterFactsMin = 2

/** Undefined where there are none. */
function encodeLater(info: LinkInfo): Uint8Array | undefined {
  const { knowsEpochs, seat, voters, clientUrl, followsNodes } = info
  const { knowsReaders, tellsReach, movesGroups, supports } = info
  const told = voters && [voters.epoch, voters.nodes]
  const facts = [
    ...[knowsEpochs, seat, told, clientUrl, followsNodes],
    ...[knowsReaders, tellsReach, movesGroups, supports && [supports.min, supports.max]],
  ]
  // Those at the end that it does not tell of are left out: an earlier build packs the same bytes.
  const count = facts.findLastIndex((fact) => fact !== undefined && fact !== false) + 1
  return count === 0 ? undefined : pack(facts.slice(0, Math.max(count, laterFactsMin)))
}

/** The message, or undefined for anything else. */
export function decodeHandshake(bytes: Uint8Array): HandshakeMessage | undefined {
  if (bytes.length > handshakeBytesMax) return undefined
  const fields = unpack(bytes)
  if (!Array.isArray(fields) || fields[0] !== messageFormat) return undefined
  const [, kind, first, second, ...more]: unknown[] = fields
  if (kind === 'welcome') return { kind }
  if (kind === 'refuse' && typeof first === 'string') {
    return { kind, reason: first.slice(0, reasonCharsMax) }
  }
  if (kind === 'proof' && first instanceof Uint8Array) return { kind, mac: first }
  if (kind === 'tell' && Array.isArray(first) && second instanceof Uint8Array) {
    const told = decodeTold(first, second, more)
    return told && { kind, ...told }
  }
  if (kind !== 'hello') return undefined
  const hello = decodeHello(fields.slice(2))
  return hello === undefined ? undefined : { kind, hello }
}

function decodeHello(fields: readonly unknown[]): Hello | undefined {
  const [side, role, range, cluster, node, nonce] = fields
  if (side !== 'dialer' && side !== 'listener') return undefined
  if (!isRole(role) || !Array.isArray(range)) return undefined
  if (typeof cluster !== 'string' || typeof node !== 'string') return undefined
  if (!(nonce instanceof Uint8Array) || nonce.length !== nonceBytes) return undefined
  const [lowest, highest]: unknown[] = range
  if (!isCount(lowest) || !isCount(highest) || lowest > highest) return undefined
  return { side, role, protocolMin: lowest, protocolMax: highest, cluster, node, nonce }
}

function isRole(value: unknown): value is Role {
  return typeof value === 'string' && roles.includes(value)
}

function decodeTold(
  facts: readonly unknown[],
  mac: Uint8Array,
  [bytes, laterMac]: readonly unknown[],
): Told | undefined {
  const info = decodeInfo(facts)
  if (info === undefined || bytes === undefined) return info && { info, mac }
  if (!(bytes instanceof Uint8Array && laterMac instanceof Uint8Array)) return undefined
  const more = decodeLater(bytes)
  return more && { info: { ...info, ...more }, mac, later: { bytes, mac: laterMac } }
}

function decodeInfo(of: readonly unknown[]): LinkInfo | undefined {
  const [storeId, incarnation, durableFlush, run, known, nodes, knowsLogEnds, compares] = of
  if (of.every(isAbsent)) return {}
  if (typeof storeId !== 'string' || !isCount(incarnation)) return undefined
  if (!isCount(durableFlush)) return undefined
  const ownRun = isCount(run) ? { run } : {}
  const remembered = Array.isArray(known) ? decodeRemembered(known) : undefined
  const memory = remembered === undefined ? {} : { known: remembered }
  const ends = knowsLogEnds === true ? { knowsLogEnds } : {}
  const newer = compares === true ? { ...ends, compares } : ends
  const told = { storeId, incarnation, durableFlush, ...ownRun, ...memory, ...newer }
  if (isAbsent(nodes)) return told
  // Dropped, it would make a side with a wrong list one that tells of none.
  const isDigest = typeof nodes === 'string' && nodes.length <= nodesCharsMax
  return isDigest ? { ...told, nodes } : undefined
}

function decodeLater(bytes: Uint8Array): LinkInfo | undefined {
  const fields = unpack(bytes)
  if (!Array.isArray(fields)) return undefined
  const [, seat, told, clientUrl, , , , , versions]: unknown[] = fields
  const voters = isAbsent(told) ? {} : decodeVoters(told)
  const supports = decodeVersions(versions)
  if (voters === undefined || supports === undefined) return undefined
  const isUrl = typeof clientUrl === 'string' && clientUrl.length <= nodeUrlCharsMax
  const known = {
    ...{ ...decodeFlags(fields), ...voters, ...supports },
    ...(isUrl && { clientUrl }),
  }
  if (isAbsent(seat)) return known
  // Dropped, it would make the store of a later seat its node's first.
  return isCount(seat, 1) ? { ...known, seat } : undefined
}

function decodeFlags([knowsEpochs, , , , followsNodes, ...more]: readonly unknown[]): LinkInfo {
  const [knowsReaders, tellsReach, movesGroups] = more
  return {
    ...(knowsEpochs === true && { knowsEpochs }),
    ...(followsNodes === true && { followsNodes }),
    ...(knowsReaders === true && { knowsReaders }),
    ...(tellsReach === true && { tellsReach }),
    ...(movesGroups === true && { movesGroups }),
  }
}

/** Undefined for anything else than two versions: a peer that tells such a thing must not count as one that tells of no versions. */
function decodeVersions(told: unknown): Pick<LinkInfo, 'supports'> | undefined {
  if (isAbsent(told)) return {}
  const supports = readVersions(told)
  return supports && { supports }
}

function decodeVoters(told: unknown): Pick<LinkInfo, 'voters'> | undefined {
  const [epoch, nodes]: unknown[] = Array.isArray(told) ? told : []
  if (!isCount(epoch, 1) || !Array.isArray(nodes)) return undefined
  if (nodes.length === 0 || nodes.length > nodeCountMax) return undefined
  const names = nodes.filter((one: unknown): one is NodeId => {
    return typeof one === 'string' && isNodeId(one)
  })
  return names.length === new Set(nodes).size ? { voters: { epoch, nodes: names } } : undefined
}

/** The facts that a side expects of the other; an absent name is not compared. */
export interface Expected {
  readonly role: Role
  readonly cluster?: string
  readonly node?: string
}

/** Why a hello is refused, or undefined. `own` is this side's. */
export function helloProblem(own: Hello, theirs: Hello, expected: Expected): string | undefined {
  if (theirs.side === own.side) return `side: both ends are a ${own.side}`
  if (theirs.role !== expected.role)
    return `role: expected a ${expected.role}, met a ${theirs.role}`
  if (theirs.protocolMax < own.protocolMin || theirs.protocolMin > own.protocolMax) {
    const mine = `${own.protocolMin} to ${own.protocolMax}`
    const other = `${theirs.protocolMin} to ${theirs.protocolMax}`
    return `protocol: this side speaks versions ${mine}, the other ${other}`
  }
  const { cluster, node } = expected
  if (expected.role === 'peer' && own.node === theirs.node) {
    return `side: both ends are node ${own.node}`
  }
  const mayBeUnnamed = expected.role === 'client' && theirs.cluster === ''
  if (cluster !== undefined && !mayBeUnnamed && theirs.cluster !== cluster) {
    return `cluster: this is cluster ${cluster}, the other belongs to ${theirs.cluster}`
  }
  if (node !== undefined && theirs.node !== node) {
    return `node: expected node ${node}, met node ${theirs.node}`
  }
  return undefined
}

/** The proof that `prover` sends to `verifier`: bound to both hellos, so that it is of no use elsewhere. */
export function computeProof(secret: string, prover: Hello, verifier: Hello): Uint8Array {
  return computeMac(secret, 'proof', prover, verifier, [])
}

/** The facts that `prover` tells, with its proof: no other side's words pass for its own. */
export function makeTell(secret: string, prover: Hello, verifier: Hello, info: LinkInfo): Told {
  const mac = computeTell(secret, prover, verifier, info)
  const bytes = encodeLater(info)
  if (bytes === undefined) return { info, mac }
  return { info, mac, later: { bytes, mac: computeLater(secret, prover, verifier, info, bytes) } }
}

/** The HMAC over what it tells of itself, later facts left out. */
export function computeTell(
  secret: string,
  prover: Hello,
  verifier: Hello,
  info: LinkInfo,
): Uint8Array {
  return computeMac(secret, 'tell', prover, verifier, encodeFields(info))
}

export function isProof(mac: Uint8Array, secret: string, prover: Hello, verifier: Hello): boolean {
  return isSame(mac, computeProof(secret, prover, verifier))
}

/** Whether this is `prover`'s own, all of it. Facts without their HMAC are not. */
export function isTold(
  { info, mac, later }: Told,
  secret: string,
  prover: Hello,
  verifier: Hello,
): boolean {
  if (!isSame(mac, computeTell(secret, prover, verifier, info))) return false
  if (later === undefined) return encodeLater(info) === undefined
  return isSame(later.mac, computeLater(secret, prover, verifier, info, later.bytes))
}

function computeLater(
  secret: string,
  prover: Hello,
  verifier: Hello,
  info: LinkInfo,
  later: Uint8Array,
): Uint8Array {
  return computeMac(secret, 'later', prover, verifier, [...encodeFields(info), later])
}

function computeMac(
  secret: string,
  word: 'proof' | 'tell' | 'later',
  prover: Hello,
  verifier: Hello,
  told: readonly Packable[],
): Uint8Array {
  const bound = pack([
    `trilithon handshake ${word}`,
    ...[prover.side, prover.role, prover.cluster, prover.node, prover.nonce],
    ...[verifier.side, verifier.role, verifier.cluster, verifier.node, verifier.nonce],
    told,
  ])
  return createHmac('sha256', secret).update(bound).digest()
}

/** In a time that tells nothing of where they differ. */
function isSame(mac: Uint8Array, wanted: Uint8Array): boolean {
  return mac.length === wanted.length && timingSafeEqual(mac, wanted)
}
