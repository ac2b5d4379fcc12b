/** The HTTP interface that a daemon serves: put together here, above both node and gateway. */
import { gatewayFetch } from '../gateway/http.ts'
import { BodyRoom } from '../gateway/request-body.ts'
import { version } from './version.ts'
import type { Node } from '../node/compose.ts'
import type { Fetch } from '../node/http-server.ts'

export function buildApi(node: Node, requestBytesMax: number): Fetch {
  const bodies = new BodyRoom(requestBytesMax)
  const { cells, admission, slices, bugs } = node
  return gatewayFetch({ cells, admission, slices, noteBug: bugs.note, version, bodies })
}
