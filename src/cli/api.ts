/** The HTTP interface that a daemon serves: put together here, above both node and gateway. */
import { systemClock } from '../adapters/system-clock.ts'
import { systemRandom } from '../adapters/system-random.ts'
import { datastoresThrough } from '../client/datastores.ts'
import { gatewayFetch } from '../gateway/http.ts'
import { BodyRoom } from '../gateway/request-body.ts'
import { version } from './version.ts'
import type { Node } from '../node/compose.ts'
import type { Fetch } from '../node/http-server.ts'

/** Of a read of the list of datastores, where the request has no time of its own. */
const listTimeoutMs = 10_000

export function buildApi(node: Node, requestBytesMax: number): Fetch {
  const bodies = new BodyRoom(requestBytesMax)
  const { cells, groups, admission, slices, bugs } = node
  const machine = { clock: systemClock, random: systemRandom, timeoutMs: listTimeoutMs }
  const datastores = datastoresThrough({ cells, groups, ...machine })
  const work = { cells, datastores, admission, slices, bodies }
  return gatewayFetch({ ...work, noteBug: bugs.note, version })
}
