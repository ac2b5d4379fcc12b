/** The nodes that a gateway shows: those that it dials now, and how it came to know each. */
import { expect, test } from 'vitest'
import {
  gatewayFigures,
  gatewayReport,
  type GatewayParts,
} from '../../src/gateway/gateway-status.ts'

const parts: GatewayParts = {
  ...{ name: 'g', cluster: 'c', version: '1', url: '', state: 'running', uptimeMs: 0 },
  ...{ nodes: ['http://a:1', 'http://b:1'], links: [], requests: 0, requestBytes: 0, clients: 0 },
  held: { waiting: { reads: 0, writes: 0 }, refused: { reads: 0, writes: 0 } },
}

const followed: GatewayParts['followed'] = {
  known: [
    { endpoint: 'http://b:1', node: 'b', from: 'given' },
    { endpoint: 'http://c:1', node: 'c', from: 'learned' },
  ],
  refusedAddresses: 3,
}

function namesOf(of: GatewayParts): readonly string[] {
  return gatewayReport(of).nodes.map(({ id, from }) => `${id} ${from}`)
}

test('a gateway that follows no nodes shows those of its configuration', () => {
  expect(namesOf(parts)).toEqual(['a:1 given', 'b:1 given'])
})

test('one that follows them shows which it has learned, and none that it has left', () => {
  expect(namesOf({ ...parts, followed })).toEqual(['b given', 'c learned'])
  const { messages } = gatewayReport({ ...parts, followed })
  expect(messages.join('; ')).not.toContain('a:1')
  expect(messages.join('; ')).toContain('node c cannot be reached')
})

test('figures count the learned nodes and the refused addresses', () => {
  const figures = new Map(
    gatewayFigures({ ...parts, followed }).map(({ name, value }) => [name, value]),
  )
  expect(figures.get('trilithon_gateway_learned_nodes')).toBe(1)
  expect(figures.get('trilithon_gateway_refused_addresses_total')).toBe(3)
})
