/** Gateways of a run and their clients, as drawn from a seed. */
import type { SeededRandom } from '../world/random.ts'

export interface GatewayOptions {
  readonly count: number
  /** The number of the clients of cells that use gateways over HTTP and no node: the last ones. */
  readonly webClientCount: number
  /** Callers of one more application, which asks in batches; 0: there is none. */
  readonly batchCallerCount: number
  /** A client's timeout for one gateway, longer over far ways, and its tries for one call. */
  readonly askTimeoutMs: number
  readonly triesMax: number
  /**
   * A gateway's timeout for one node; the failures that open its breaker, and for how long at
   * first.
   */
  readonly tryTimeoutMs: number
  readonly failuresMax: number
  readonly openMs: number
}

/** Of the runs. */
const gatewayRate = 350_000

export function drawGateways(
  random: SeededRandom,
  clientCount: number,
): { readonly gateways?: GatewayOptions } {
  if (!random.chance(gatewayRate)) return {}
  return {
    gateways: {
      count: random.int(1, 2),
      webClientCount: random.int(1, clientCount),
      batchCallerCount: random.pick([0, 2, 4]),
      askTimeoutMs: random.pick([200, 1_000, 5_000]),
      triesMax: random.int(1, 4),
      tryTimeoutMs: random.pick([50, 200, 1_000]),
      failuresMax: random.pick([1, 2, 5]),
      openMs: random.pick([50, 500, 2_000]),
    },
  }
}
