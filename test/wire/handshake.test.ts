/** The handshake's words: as bytes, what is refused and why, and what a proof is bound to. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { nodeCountMax } from '../../src/base/limits.ts'
import { pack, type Packable } from '../../src/base/pack.ts'
import {
  decodeHandshake,
  encodeHandshake,
  handshakeBytesMax,
  helloProblem,
  isProof,
  isTold,
  makeTell,
  nonceBytes,
  computeProof,
  protocolMin,
  computeTell,
  type Expected,
  type HandshakeMessage,
  type Hello,
  type Told,
} from '../../src/wire/handshake.ts'
import type { LinkInfo } from '../../src/ports/transport.ts'

const n1: Hello = {
  ...{ side: 'dialer', role: 'peer', protocolMin: 1, protocolMax: 3, cluster: 'c', node: 'n1' },
  nonce: Buffer.alloc(nonceBytes, 1),
}
const n2: Hello = {
  ...{ side: 'listener', role: 'peer', protocolMin: 2, protocolMax: 5, cluster: 'c', node: 'n2' },
  nonce: Buffer.alloc(nonceBytes, 2),
}

const count = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })
const name = fc.stringMatching(/^[a-z0-9-]{0,32}$/)
const nonce = fc.uint8Array({ minLength: nonceBytes, maxLength: nonceBytes }).map(Buffer.from)

const hello: fc.Arbitrary<Hello> = fc
  .record({
    side: fc.constantFrom('dialer', 'listener'),
    role: fc.constantFrom('peer', 'node', 'client'),
    range: fc.tuple(count, count).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const),
    ...{ cluster: name, node: name, nonce },
  })
  .map(({ range: [protocolMin, protocolMax], ...rest }) => ({ ...rest, protocolMin, protocolMax }))

const yes = fc.constant(true)
const nodeName = fc.stringMatching(/^[a-z][a-z0-9-]{0,31}$/).map(nodeId)

const info: fc.Arbitrary<LinkInfo> = fc.oneof(
  fc.constant({}),
  fc.constant({ followsNodes: true }),
  fc.constant({ tellsReach: true }),
  fc.constant({ followsNodes: true, tellsReach: true }),
  fc.constant({ supports: { min: 1, max: 2 } }),
  fc.record(
    {
      ...{ storeId: fc.uuid(), incarnation: count, durableFlush: count },
      nodes: fc.string({ maxLength: 64 }),
      ...{ knowsLogEnds: yes, compares: yes, knowsEpochs: yes },
      seat: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
      voters: fc.record({
        epoch: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
        nodes: fc.uniqueArray(nodeName, { minLength: 1, maxLength: nodeCountMax }),
      }),
      clientUrl: fc.webUrl({ size: 'small' }).filter(({ length }) => length <= 300),
    },
    { requiredKeys: ['storeId', 'incarnation', 'durableFlush'] },
  ),
)
const mac = fc.uint8Array().map(Buffer.from)

/** The message, its later facts as bytes alone: unpacking leaves a property on those that it has read. */
function read(bytes: Uint8Array): HandshakeMessage | undefined {
  const decoded = decodeHandshake(bytes)
  if (decoded?.kind !== 'tell' || decoded.later === undefined) return decoded
  const { later } = decoded
  return { ...decoded, later: { bytes: Buffer.from(later.bytes), mac: later.mac } }
}

const message: fc.Arbitrary<HandshakeMessage> = fc.oneof(
  fc.record({ kind: fc.constant('hello' as const), hello }),
  fc.record({ kind: fc.constant('proof' as const), mac }),
  info.map((told) => ({ kind: 'tell' as const, ...makeTell('secret', n1, n2, told) })),
  fc.record({ kind: fc.constant('welcome' as const) }),
  fc.record({ kind: fc.constant('refuse' as const), reason: fc.string({ maxLength: 100 }) }),
)

test('every word of a handshake comes back as it was said', () => {
  fc.assert(
    fc.property(message, (one) => {
      expect(read(encodeHandshake(one))).toEqual(one)
    }),
    { numRuns: 500 },
  )
})

test('damage and garbage are no words, or words that can be said: never an exception', () => {
  const damaged = message.map(encodeHandshake).chain((good) =>
    fc.oneof(
      fc.nat({ max: good.length * 8 - 1 }).map((bit) => {
        const bad = Buffer.from(good)
        bad[bit >> 3] = (bad[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        return bad
      }),
      fc.nat({ max: good.length - 1 }).map((length) => good.subarray(0, length)),
      fc.uint8Array({ maxLength: 60 }),
    ),
  )
  let refused = 0
  fc.assert(
    fc.property(damaged, (input) => {
      const decoded = read(input)
      if (decoded === undefined) refused += 1
      else expect(read(encodeHandshake(decoded))).toEqual(decoded)
    }),
    { numRuns: 2000 },
  )
  expect(refused).toBeGreaterThan(500)
})

const zeros = Buffer.alloc(nonceBytes)
/** A tell with these later facts. */
function tellOf(later: Packable): Buffer {
  return pack([1, 'tell', ['id', 1, 1, 5, [], 'd', true, true], zeros, later, zeros])
}

test.each([
  ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  ['nothing', Buffer.of()],
  ['another format', pack([2, 'welcome'])],
  ['an unknown word', pack([1, 'howdy'])],
  ['a short nonce', pack([1, 'hello', 'dialer', 'peer', [1, 1], 'c', 'n', zeros.subarray(1), []])],
  ['a fractional version', pack([1, 'hello', 'dialer', 'peer', [1, 1.5], 'c', 'n', zeros, []])],
  ['an empty range', pack([1, 'hello', 'dialer', 'peer', [2, 1], 'c', 'n', zeros, []])],
  ['an unknown side', pack([1, 'hello', 'both', 'peer', [1, 1], 'c', 'n', zeros, []])],
  ['an unknown role', pack([1, 'hello', 'dialer', 'boss', [1, 1], 'c', 'n', zeros, []])],
  ['half a store', pack([1, 'tell', ['id', 1], zeros])],
  ['a negative flush', pack([1, 'tell', ['id', 1, -1], zeros])],
  ['a digest of nodes that is no text', pack([1, 'tell', ['id', 1, 1, 5, [], 7], zeros])],
  ['a digest too long', pack([1, 'tell', ['id', 1, 1, 5, [], 'x'.repeat(65)], zeros])],
  ['seat zero', tellOf(pack([true, 0]))],
  ['half a seat', tellOf(pack([true, 1.5]))],
  ['a seat that is text', tellOf(pack([true, '1']))],
  ['later facts that are no list', tellOf(pack(true))],
  ['later facts that are not packed', tellOf([true, 1])],
  ['later facts without a proof', pack([1, 'tell', ['id', 1, 1], zeros, pack([true])])],
  ['a store without a proof', pack([1, 'tell', ['id', 1, 1]])],
  ['a proof that is text', pack([1, 'proof', 'text'])],
  ['a word too long', pack([1, 'refuse', 'x'.repeat(handshakeBytesMax)])],
])('%s is no word of a handshake', (_, bytes) => {
  expect(decodeHandshake(bytes)).toBeUndefined()
})

const client: Hello = { ...n1, role: 'client', cluster: '', node: '' }
const node: Hello = { ...n2, role: 'node' }

const newest: LinkInfo = {
  ...{ storeId: 's', incarnation: 1, durableFlush: 7 },
  ...{ knowsLogEnds: true, compares: true, knowsEpochs: true, seat: 3 },
}

test('two that fit have no problem with each other, whichever asks', () => {
  expect(helloProblem(n1, n2, { role: 'peer', cluster: 'c', node: 'n2' })).toBeUndefined()
  expect(helloProblem(n2, n1, { role: 'peer', cluster: 'c' })).toBeUndefined()
  expect(helloProblem(node, client, { role: 'client', cluster: 'c' })).toBeUndefined()
  expect(helloProblem(client, node, { role: 'node' })).toBeUndefined()
})

const peerOfC: Expected = { role: 'peer', cluster: 'c' }

test.each<readonly [string, Hello, Hello, Expected, string]>([
  ['versions above ours', n1, { ...n2, protocolMin: 4 }, peerOfC, 'protocol: '],
  ['versions below ours', n2, { ...n1, protocolMax: 1 }, peerOfC, 'protocol: '],
  ['a node of no cluster', n1, { ...n2, cluster: '' }, peerOfC, 'cluster: '],
  ['another cluster', n1, { ...n2, cluster: 'd' }, peerOfC, 'cluster: '],
  [
    'a client of another cluster',
    node,
    { ...client, cluster: 'd' },
    { role: 'client', cluster: 'c' },
    'cluster: ',
  ],
  ['another node than was dialled', n1, n2, { ...peerOfC, node: 'n3' }, 'node: '],
  ['a client on a peer link', n2, client, peerOfC, 'role: '],
  ['a peer on a client link', node, n1, { role: 'client', cluster: 'c' }, 'role: '],
  ['two dialers', n1, { ...n2, side: 'dialer' }, peerOfC, 'side: '],
  ['itself', n1, { ...n2, node: 'n1' }, peerOfC, 'side: '],
])('%s: refused, with what to compare', (_, own, theirs, expected, reason) => {
  expect(helloProblem(own, theirs, expected)).toMatch(new RegExp(`^${reason}`))
})

test('a proof holds for its secret, its two hellos and its direction, and for nothing else', () => {
  const mac = computeProof('secret', n1, n2)
  expect(isProof(mac, 'secret', n1, n2)).toBe(true)
  expect(isProof(mac, 'another', n1, n2)).toBe(false)
  expect(isProof(mac, '', n1, n2)).toBe(false)
  expect(isProof(mac, 'secret', n2, n1)).toBe(false)
  expect(isProof(mac.subarray(1), 'secret', n1, n2)).toBe(false)
  expect(isProof(Buffer.of(), 'secret', n1, n2)).toBe(false)
  const changes: readonly Partial<Hello>[] = [
    { node: 'n3' },
    { cluster: 'd' },
    { nonce: Buffer.alloc(nonceBytes, 3) },
    { role: 'client' },
  ]
  for (const change of changes) {
    expect(isProof(mac, 'secret', { ...n1, ...change }, n2)).toBe(false)
    expect(isProof(mac, 'secret', n1, { ...n2, ...change })).toBe(false)
  }
})

test('a side’s store info is bound to its proof, with no other words and no other use', () => {
  const told: LinkInfo = { storeId: 's', incarnation: 1, durableFlush: 7 }
  const mac = computeTell('secret', n1, n2, told)
  expect(isTold({ info: told, mac }, 'secret', n1, n2)).toBe(true)
  expect(isTold({ info: told, mac }, 'secret', n2, n1)).toBe(false)
  expect(isTold({ info: { ...told, durableFlush: 8 }, mac }, 'secret', n1, n2)).toBe(false)
  expect(isTold({ info: { ...told, storeId: 't' }, mac }, 'secret', n1, n2)).toBe(false)
  // A proof says nothing of a store, and no side can make one say that there is none.
  const proof = computeProof('secret', n1, n2)
  expect(isTold({ info: {}, mac: proof }, 'secret', n1, n2)).toBe(false)
  expect(isProof(computeTell('secret', n1, n2, {}), 'secret', n1, n2)).toBe(false)
})

test('the proof binds each fact that later builds tell, and says which of them are absent', () => {
  const told = makeTell('secret', n1, n2, newest)
  const isHeld = (changed: Partial<Told>): boolean =>
    isTold({ ...told, ...changed }, 'secret', n1, n2)
  expect(isHeld({})).toBe(true)
  expect(isTold(told, 'another', n1, n2)).toBe(false)
  expect(isTold(told, 'secret', n2, n1)).toBe(false)
  for (const name of ['knowsLogEnds', 'compares'] as const) {
    const { [name]: _, ...less } = newest
    expect(isHeld({ info: less })).toBe(false)
  }
  const { mac } = told.later ?? told
  expect(isHeld({ later: { bytes: pack([true, 4]), mac } })).toBe(false)
  expect(isHeld({ later: { bytes: pack([true, 3]), mac: told.mac } })).toBe(false)
  expect(isTold({ info: newest, mac: told.mac }, 'secret', n1, n2)).toBe(false)
  // The same later facts, told of another store.
  const { later } = makeTell('secret', n1, n2, { ...newest, storeId: 't' })
  expect(later?.bytes).toEqual(told.later?.bytes)
  expect(later && isHeld({ later })).toBe(false)
})

test('a tell with later facts begins with all of the tell of an earlier build, which passes over the rest', () => {
  const told = makeTell('secret', n1, n2, newest)
  const parts = [['s', 1, 7, null, null, null, true, true], told.mac]
  const rest = [told.later?.bytes, told.later?.mac]
  expect(encodeHandshake({ kind: 'tell', ...told })).toEqual(pack([1, 'tell', ...parts, ...rest]))
  const { knowsEpochs: _, seat: __, ...earlier } = newest
  const before = { kind: 'tell', ...makeTell('secret', n1, n2, earlier) } as const
  expect(encodeHandshake(before)).toEqual(pack([1, 'tell', ...parts]))
})

test('of the later facts of a tell a node reads those that it knows, and keeps the bytes that the proof is of', () => {
  const bytes = Buffer.from(pack([true, 3, null, null, null, 'more']))
  const said = pack([1, 'tell', ['s', 1, 7, null, null, null, true, true], zeros, bytes, zeros])
  const later = { bytes, mac: zeros }
  expect(read(said)).toEqual({ kind: 'tell', info: newest, mac: zeros, later })
})

test('a client that follows the nodes says so apart from the facts that earlier builds read', () => {
  const told = makeTell('secret', client, node, { followsNodes: true })
  const facts = [null, null, null, null, null, null]
  const before = makeTell('secret', client, node, {})
  expect(told.mac).toEqual(before.mac)
  const later = [Buffer.from(pack([null, null, null, null, true])), told.later?.mac]
  const said = pack([1, 'tell', facts, told.mac, ...later])
  expect(encodeHandshake({ kind: 'tell', ...told })).toEqual(said)
})

test('UPG-1: a build tells the cluster versions that it supports last, and the other side refuses a range that is none', () => {
  const told = makeTell('secret', n1, n2, { ...newest, supports: { min: 1, max: 2 } })
  const facts = [true, 3, null, null, null, null, null, null]
  expect(told.later?.bytes).toEqual(Buffer.from(pack([...facts, [1, 2]])))
  const said = (versions: Packable): HandshakeMessage | undefined => {
    const bytes = Buffer.from(pack([...facts, versions]))
    return read(pack([1, 'tell', ['s', 1, 7, null, null, null, true, true], zeros, bytes, zeros]))
  }
  expect(said([2, 3])).toMatchObject({ info: { ...newest, supports: { min: 2, max: 3 } } })
  // Of a build that knows of none.
  expect(said(null)).toMatchObject({ info: newest })
  for (const odd of [[2, 1], [0, 1], [1], [1, 2, 3], [1, 1_000_001], ['1', '2'], 2, true]) {
    expect(said(odd), JSON.stringify(odd)).toBe(undefined)
  }
})

test('an address for clients that no address can be is passed over', () => {
  for (const odd of ['x'.repeat(301), 7, true]) {
    const bytes = pack([true, 3, null, odd, null])
    const said = pack([1, 'tell', ['s', 1, 7, null, null, null, true, true], zeros, bytes, zeros])
    expect(read(said)).toMatchObject({ info: newest })
  }
})

test('a hello of version 3, which told of its store, is read, and refused for its version', () => {
  const range = [3, 3]
  const told = ['0b2f6f0e-6f0a-4c0e-8f59-6d1f5a2c7e31', 1, 9, 5]
  const bytes = pack([1, 'hello', 'dialer', 'peer', range, 'c', 'n1', zeros, told])
  const decoded = decodeHandshake(bytes)
  expect(decoded).toMatchObject({ kind: 'hello', hello: { node: 'n1', protocolMax: 3 } })
  if (decoded?.kind !== 'hello') return
  const own = { ...n2, protocolMin, protocolMax: protocolMin }
  expect(helloProblem(own, decoded.hello, peerOfC)).toBe(
    'protocol: this side speaks versions 6 to 6, the other 3 to 3',
  )
})

test('without a secret the proofs are those of an empty key: both sides must have none', () => {
  expect(isProof(computeProof('', n1, n2), '', n1, n2)).toBe(true)
  expect(isProof(computeProof('', n1, n2), 'secret', n1, n2)).toBe(false)
})
