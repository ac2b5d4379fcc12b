/**
 * The handshake that opens every link, pure: what each side says, checks and proves.
 *
 *   hello    who I am: role, cluster, node, protocol range, a nonce, and what my store says
 *   proof    HMAC-SHA256 over both nonces and names under the cluster's secret
 *   welcome  you are admitted; frames may follow
 *   refuse   why not; the link ends
 *
 * Both sides send a hello at once and a proof on the other's hello. A link is up for a side when it
 * has welcomed the other and was welcomed. Nothing the other side says is used before its proof: a
 * refusal least of all, since the driver may end the node for it. A proof names the side it comes
 * from, so that two listeners cannot be made to prove themselves to each other by somebody between
 * them. Who changes bytes on the way of a true link is kept out by TLS, not here.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { pack, unpack } from '../base/pack.ts'
import type { LinkInfo } from '../ports/transport.ts'

/** The protocol versions this build speaks. */
export const protocolMin = 3
export const protocolMax = 3

export const nonceBytes = 16
/** A hello and everything else before the first frame stays below this. */
export const handshakeBytesMax = 4096

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
  readonly info: LinkInfo
}

export type HandshakeMessage =
  | { readonly kind: 'hello'; readonly hello: Hello }
  | { readonly kind: 'proof'; readonly mac: Uint8Array }
  | { readonly kind: 'welcome' }
  | { readonly kind: 'refuse'; readonly reason: string }

const messageFormat = 1
const roles: readonly string[] = ['peer', 'node', 'client'] satisfies Role[]

export function encodeHandshake(message: HandshakeMessage): Uint8Array {
  switch (message.kind) {
    case 'hello': {
      const { side, role, cluster, node, nonce, info } = message.hello
      const range = [message.hello.protocolMin, message.hello.protocolMax]
      const of = [info.storeId, info.incarnation, info.durableFlush, info.wallMicros]
      return pack([messageFormat, 'hello', side, role, range, cluster, node, nonce, of])
    }
    case 'proof':
      return pack([messageFormat, 'proof', message.mac])
    case 'welcome':
      return pack([messageFormat, 'welcome'])
    case 'refuse':
      return pack([messageFormat, 'refuse', message.reason])
  }
}

/** The message, or undefined for anything else. */
export function decodeHandshake(bytes: Uint8Array): HandshakeMessage | undefined {
  if (bytes.length > handshakeBytesMax) return undefined
  const fields = unpack(bytes)
  if (!Array.isArray(fields) || fields[0] !== messageFormat) return undefined
  const [, kind, first]: unknown[] = fields
  if (kind === 'welcome') return { kind }
  if (kind === 'refuse' && typeof first === 'string') return { kind, reason: first.slice(0, 500) }
  if (kind === 'proof' && first instanceof Uint8Array) return { kind, mac: first }
  if (kind !== 'hello') return undefined
  const hello = decodeHello(fields.slice(2))
  return hello === undefined ? undefined : { kind, hello }
}

function decodeHello(fields: readonly unknown[]): Hello | undefined {
  const [side, role, range, cluster, node, nonce, of] = fields
  if (side !== 'dialer' && side !== 'listener') return undefined
  if (!isRole(role) || !Array.isArray(range) || !Array.isArray(of)) return undefined
  if (typeof cluster !== 'string' || typeof node !== 'string') return undefined
  if (!(nonce instanceof Uint8Array) || nonce.length !== nonceBytes) return undefined
  const [lowest, highest]: unknown[] = range
  if (!isCount(lowest) || !isCount(highest) || lowest > highest) return undefined
  const info = decodeInfo(of)
  const protocol = { protocolMin: lowest, protocolMax: highest }
  return info && { side, role, ...protocol, cluster, node, nonce, info }
}

function isRole(value: unknown): value is Role {
  return typeof value === 'string' && roles.includes(value)
}

function decodeInfo(of: readonly unknown[]): LinkInfo | undefined {
  const [storeId, incarnation, durableFlush, wallMicros] = of
  if (of.every((one) => one === null || one === undefined)) return {}
  if (typeof storeId !== 'string' || !isCount(incarnation)) return undefined
  if (!isCount(durableFlush)) return undefined
  const own = { storeId, incarnation, durableFlush }
  if (wallMicros === null || wallMicros === undefined) return own
  return isCount(wallMicros) ? { ...own, wallMicros } : undefined
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/** What a side expects of the other; an absent name is not compared. */
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
  if (expected.role === 'peer' && isWrongWay(own, theirs)) {
    return `side: of two nodes the one with the smaller id dials`
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

function isWrongWay(own: Hello, theirs: Hello): boolean {
  return own.side === 'dialer' ? own.node >= theirs.node : theirs.node >= own.node
}

/** What `prover` sends to `verifier`: bound to both hellos, so that it is of no use elsewhere. */
export function proofOf(secret: string, prover: Hello, verifier: Hello): Uint8Array {
  const bound = pack([
    'trilithon handshake',
    ...[prover.side, prover.role, prover.cluster, prover.node, prover.nonce],
    ...[verifier.side, verifier.role, verifier.cluster, verifier.node, verifier.nonce],
  ])
  return createHmac('sha256', secret).update(bound).digest()
}

export function isProof(mac: Uint8Array, secret: string, prover: Hello, verifier: Hello): boolean {
  const wanted = proofOf(secret, prover, verifier)
  return mac.length === wanted.length && timingSafeEqual(mac, wanted)
}
