/** Planted bugs in the gateway, its HTTP interface, and the breakers by which nodes are chosen. */
import type { Edit, Mutant } from './mutant.ts'

/** Few clients ask over HTTP in most runs: in the mutant's seeds there are gateways always. */
const inGateways: Edit = {
  file: 'sim/cluster/gateway-draw.ts',
  find: 'const gatewayRate = 350_000',
  replace: 'const gatewayRate = 1_000_000',
}

export const gatewayMutants: readonly Mutant[] = [
  {
    id: 'W01',
    title: 'an outcome that is not known is told as a plain failure',
    edits: [
      inGateways,
      {
        file: 'src/gateway/problems.ts',
        find: '  const { group, limit, limitValue, actual, attempts, index, retryAfterMs } = of.detail\n',
        replace:
          "  if (of.code === 'unknown-outcome') of = { ...of, code: 'unavailable' }\n" +
          '  const { group, limit, limitValue, actual, attempts, index, retryAfterMs } = of.detail\n',
      },
    ],
  },
  {
    id: 'W02',
    title: 'a put is told to be safe before its node has answered',
    edits: [
      inGateways,
      {
        file: 'src/gateway/write-routes.ts',
        find: '  const written = only(answer.items)\n',
        replace:
          '  const [told] = answer.items\n' +
          "  const isOpen = told?.kind === 'problem' && told.problem.code === 'unknown-outcome'\n" +
          '  const written = isOpen ? ({ shard: 0, buffered: true } as const) : only(answer.items)\n',
      },
    ],
  },
  {
    id: 'W03',
    title: 'the position that a session sends is not looked at',
    edits: [
      inGateways,
      {
        file: 'src/gateway/session-position.ts',
        find: '  return of === datastore ? [[',
        replace: "  return of === datastore + '/' ? [[",
      },
    ],
  },
  {
    id: 'W04',
    title: 'the position of an answer is told one too low',
    edits: [
      inGateways,
      {
        file: 'src/gateway/session-position.ts',
        find: '${first[0]}/${first[1]}`',
        replace: '${first[0]}/${Math.max(0, first[1] - 1)}`',
      },
    ],
  },
  {
    id: 'W05',
    title: 'a breaker that is open stays so',
    edits: [
      inGateways,
      {
        file: 'src/client/breaker.ts',
        find: "    return nowMs < this.#openUntilMs ? 'open' : 'half-open'\n",
        replace: "    return nowMs < Infinity ? 'open' : 'half-open'\n",
      },
    ],
  },
  {
    id: 'W06',
    title: 'an answer to its probe does not close a breaker',
    edits: [
      inGateways,
      {
        file: 'src/client/breaker.ts',
        find: '  succeed(): void {\n    this.reset()\n',
        replace: '  succeed(): void {\n    if (this.#openUntilMs === 0) this.reset()\n',
      },
    ],
  },
  {
    id: 'W08',
    title: 'a gateway puts a cell under the next ref key when it tries again',
    edits: [
      inGateways,
      {
        file: 'src/client/relay.ts',
        find: '      return this.#caller.carryOut(batch, call, timeoutMs)\n    })\n    own?.settle',
        replace:
          '      const next = call.next.bind(call)\n' +
          '      let tries = 0\n' +
          '      call.next = () => {\n' +
          '        const sending = next()\n' +
          "        if ((tries += 1) === 1 || sending.operation.kind !== 'put') return sending\n" +
          '        const items = sending.operation.items.map((one) => {\n' +
          '          return { ...one, refKey: one.refKey + 1 }\n' +
          '        })\n' +
          '        return { ...sending, operation: { ...sending.operation, items } }\n' +
          '      }\n' +
          '      return this.#caller.carryOut(batch, call, timeoutMs)\n    })\n    own?.settle',
      },
    ],
  },
  {
    id: 'W09',
    title: 'what failed of a batch is told as what did not',
    edits: [
      inGateways,
      {
        file: 'src/gateway/render.ts',
        find: '  const list = await listText(pace, items, {\n',
        replace:
          '  const told = items.map((item) =>\n' +
          "    item.kind === 'ok' ? item : (items.find((one) => one.kind === 'ok') ?? item),\n" +
          '  )\n' +
          '  const list = await listText(pace, told, {\n',
      },
    ],
  },
  {
    id: 'W10',
    title: 'a gateway tries a put again under another intent',
    edits: [
      inGateways,
      {
        file: 'src/client/relay.ts',
        find: 'new PutCall(batch, { ...open, sequences, settle })',
        replace:
          'new PutCall(batch, {\n' +
          '        ...open,\n' +
          '        sequences,\n' +
          '        settle,\n' +
          '        intents: (some) => {\n' +
          '          const fresh = this.#sessions.openMany(some.length)\n' +
          '          return fresh.intents(fresh.sequences)\n' +
          '        },\n' +
          '      })',
      },
    ],
  },
  {
    id: 'W11',
    title: 'a cell that could not be read is told not to be there',
    edits: [
      inGateways,
      {
        file: 'src/gateway/read-routes.ts',
        find: "  if (found?.kind === 'ok' && found.value === undefined) {\n",
        replace: "  if (found?.kind !== 'ok' || found.value === undefined) {\n",
      },
    ],
  },
  {
    id: 'W12',
    title: 'a current read over HTTP asks any replica',
    edits: [
      inGateways,
      {
        file: 'src/gateway/exchange.ts',
        find: '  if (maxStalenessMs === undefined) return { level, atLeast }\n',
        replace:
          "  if (maxStalenessMs === undefined)\n    return { level: level === 'current' ? 'snapshot' : level, atLeast }\n",
      },
    ],
  },
  {
    id: 'W13',
    title: 'the parts of a batch come back in the order of the nodes',
    edits: [
      inGateways,
      {
        file: 'src/cells/batch.ts',
        find: 'items[place] = outcomes[i] ?? missingItem\n',
        replace: 'items[place < 0 ? place : items.length] = outcomes[i] ?? missingItem\n',
      },
    ],
  },
]
