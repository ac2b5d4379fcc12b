/** Questions for a seat, and the answers that give one. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { askForSeat } from '../../src/node/seat-asks.ts'

interface Peer {
  /** Of GET `/members`. */
  readonly view: object
  /** Of POST `/members/replace`; absent: it refuses. */
  readonly change?: object
}

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

const since = '2026-01-01T00:00:00.000Z'
const own = { node: 'b', standing: 'unknown', isAlive: false }
const quiet = { epoch: 1, canLose: 0, members: [own] }
const granted = { number: 1, kind: 'replace', phase: 'copying', node: 'b', seat: 4_097, since }

/** Asks these peers in order; resolves with the seat, or the reasons of the first round, and the requests that came. */
async function askPeers(
  ...peers: readonly Peer[]
): Promise<{ readonly outcome: unknown; readonly requests: readonly string[] }> {
  const requests: string[] = []
  const others = await Promise.all(
    peers.map(async (peer, n) => {
      const server = createServer((request, response) => {
        const { method = '', url = '', headers } = request
        requests.push(`${n} ${method} ${url} ${headers.authorization ?? ''}`.trim())
        const isPost = method === 'POST'
        if (isPost && peer.change === undefined && url.startsWith('/members/replace')) {
          response.statusCode = 400
          return response.end(JSON.stringify({ detail: 'another change is under way' }))
        }
        return response.end(JSON.stringify(isPost ? { change: peer.change } : peer.view))
      })
      servers.push(server)
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
      return { id: nodeId(`n${n}`), url: `http://127.0.0.1:${portOf(server.address())}` }
    }),
  )
  const ending = new AbortController()
  let first: readonly string[] | undefined
  const parts = { node: nodeId('b'), storeId: 'own', others, secret: 'word' }
  const outcome = await askForSeat({
    ...{ ...parts, signal: ending.signal },
    onRefused: (why) => {
      first ??= why
      ending.abort()
    },
  }).catch((error: unknown) => (first === undefined ? error : first))
  return { outcome, requests }
}

function portOf(address: AddressInfo | string | null): number {
  return typeof address === 'object' ? (address?.port ?? 0) : 0
}

test('the first node that gives a seat ends the questions, which carry the secret of the cluster', async () => {
  const peer = { view: quiet, change: granted }
  const { outcome, requests } = await askPeers({ view: quiet }, peer, peer)
  expect(outcome).toBe(4_097)
  expect(requests).toEqual([
    '0 GET /members Bearer word',
    '0 POST /members/replace?node=b Bearer word',
    '1 GET /members Bearer word',
    '1 POST /members/replace?node=b Bearer word',
  ])
})

test('a node without a majority gets no request for a seat: it would be carried out later', async () => {
  const { outcome, requests } = await askPeers({ view: { ...quiet, canLose: -1 }, change: granted })
  expect(outcome).toEqual(['n0: no majority of the voters answers it now'])
  expect(requests).toEqual(['0 GET /members Bearer word'])
})

test('a node that hears of another process under the name gets no request for a seat', async () => {
  const view = { ...quiet, members: [{ ...own, isAlive: true }] }
  const { outcome, requests } = await askPeers({ view, change: granted })
  expect(outcome).toEqual([expect.stringMatching(/^n0: it hears of b: another process runs/)])
  expect(requests).toEqual(['0 GET /members Bearer word'])
})

test('SEAT-1: a change with the lost store of this folder is given up, one with an unknown store is not', async () => {
  const bound = (store: string): object => ({ ...quiet, change: { ...granted, store } })
  const lost = await askPeers({ view: bound('own'), change: granted })
  expect(lost.outcome).toBe(4_097)
  expect(lost.requests[1]).toMatch(/POST \/members\/cancel/)
  const other = await askPeers({ view: bound('other'), change: granted })
  expect(other.outcome).toEqual([expect.stringMatching(/given the seat to store other/)])
  expect(other.requests).toHaveLength(1)
})

test.each([
  ['of another node', { ...granted, node: 'c' }],
  ['that has begun its epoch', { ...granted, phase: 'sealing' }],
  ['whose seat has a store', { ...granted, store: 'other' }],
  ['without a seat', { number: 1, kind: 'renew', phase: 'sealing', since }],
])('a change %s gives no seat', async (_, change) => {
  const { outcome } = await askPeers({ view: quiet, change })
  expect(outcome).toEqual([expect.stringMatching(/change 1 has no seat left/)])
})
