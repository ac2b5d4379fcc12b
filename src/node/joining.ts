/** The start of a node that no replica set began with: its first store has a seat, which a change of the voters hands out. */
import { readdir } from 'node:fs/promises'
import { logName } from '../adapters/log-switch.ts'
import { StoreError } from '../base/errors.ts'
import type { LaterSet } from '../placement/placement.ts'
import type { NodeConfig } from '../config/node-config.ts'

/**
 * The folder is there. `seat`: of the store that is to be made, where one is. Rejects with `invalid` where a node that joins
 * would make a store without a seat: the others let none in. `later`: the sets that came later; the nodes that these began with need none.
 */
export async function checkJoiningSeat(
  config: Pick<NodeConfig, 'node' | 'nodes' | 'data'>,
  seat: number | undefined,
  later: readonly LaterSet[] = [],
): Promise<void> {
  const { node, nodes, data } = config
  const own = nodes.find(({ id }) => id === node)
  if (own?.joins !== true || seat !== undefined) return
  if (later.some((set) => set.nodes.some((one) => one.node === node))) return
  if ((await readdir(data)).includes(logName)) return
  const other = nodes.find((one) => one.set === own.set && one.id !== node)
  const add = `trilithon nodes add ${node} --at ${own.url} --url ${other?.url ?? ''}`
  throw new StoreError(
    'invalid',
    `${node} joins its replica set, and the data folder ${data} has no store as yet: make ${node} a member first (${add}), then start it with the seat that this prints (--seat N)`,
  )
}
