/**
 * A cluster in the simulated world with a replica set of three nodes, and a client, in each of two regions. The client of a region
 * has links with the nodes of its region alone. Every figure is the same on every machine.
 */
import { defineSchema } from '../schema/define.ts'
import { t } from '../schema/property.ts'
import { table } from '../schema/table.ts'
import { assert, present } from '../src/base/assert.ts'
import { Client } from '../src/client/client.ts'
import { rootKey, type Tables } from '../src/tables/tables.ts'
import type { SimCluster } from '../sim/cluster/comparison.ts'
import { buildSets, clientName, outgoing } from '../sim/cluster/endpoints.ts'
import { makeCluster, nobody } from '../sim/run-setup.ts'
import { calmFor, calmSkew } from '../sim/scenarios/scenario-calm.ts'
import { createClock } from '../sim/world/clock.ts'
import { SimProcess } from '../sim/world/sim-process.ts'

/** As the simulated cluster calls the regions of its sets. */
export const regionNames = ['r1', 'r2'] as const

const nodesPerRegion = 3
/** One way between two zones of a region, and between a client and a node of its region. */
const nearMicros = 500
/** One way between the regions. */
export const farMicros = 40_000
const patienceMicros = 60_000_000
const beginMicros = 2_000_000
/** Longer than what follows upon an answer takes. */
const restMicros = 500_000

const Placed = table('Placed', { region: t.string(), id: t.integer(), text: t.string() })
  .key('region', 'id')
  .root({ placement: { by: 'region' } })
const Hashed = table('Hashed', { region: t.string(), id: t.integer(), text: t.string() })
  .key('region', 'id')
  .root()
const schema = defineSchema('Area', [Placed, Hashed])

/** `placed`: its groups are in the set of their region. `hashed`: a hash of the key chooses the set. */
export type AreaTable = 'placed' | 'hashed'

export class PlacedArea {
  readonly cluster: SimCluster
  readonly #dbs: Tables<typeof schema.tables>[] = []

  private constructor(cluster: SimCluster) {
    this.cluster = cluster
  }

  static async open(): Promise<PlacedArea> {
    const nodeCount = nodesPerRegion * regionNames.length
    const calm = calmFor(nodeCount)
    const options = {
      ...{ ...calm, nodeCount, setCount: regionNames.length },
      link: { ...calm.link, noticeMeanMicros: 0, between: buildWays(nodeCount) },
      disk: { writeMinMicros: 50, writeMeanMicros: 0 },
    }
    const cluster = makeCluster({ options, faults: [] }, {}, nobody)
    const area = new PlacedArea(cluster)
    const clients = regionNames.map((_, region) => openClient(cluster, region))
    cluster.start()
    await cluster.world.run(() => false, beginMicros)
    await area.timed(() => present(clients[0], 'bench: there is a client').applySchema(schema))
    for (const client of clients) {
      await area.timed(async () => void area.#dbs.push(await client.tables(schema)))
    }
    return area
  }

  /** Writes the row of a group from a region; gives the milliseconds. `in`: the region in the key. */
  commit(
    from: number,
    to: AreaTable,
    key: { readonly in: string; readonly id: number },
  ): Promise<number> {
    const { in: region, id } = key
    const of = to === 'placed' ? Placed : Hashed
    const db = this.#db(from)
    const row = { region, id, text: 'x'.repeat(100) }
    return this.timed(() => db.transaction(rootKey(of, { region, id }), (tx) => tx.put(of, row)))
  }

  /** Of the table with a place for each group: the text of a row, by a current read. */
  async read(
    from: number,
    key: { readonly in: string; readonly id: number },
  ): Promise<string | undefined> {
    const named = { region: key.in, id: key.id }
    let text: string | undefined
    await this.timed(async () => {
      const { value } = await this.#db(from).read(rootKey(Placed, named), 'current', (rows) =>
        rows.get(Placed, named),
      )
      text = value?.text
    })
    return text
  }

  /** The number of the set that has the group. */
  setOf(of: AreaTable, key: { readonly in: string; readonly id: number }): number {
    const table = of === 'placed' ? Placed : Hashed
    const group = this.#db(0).group(rootKey(table, { region: key.in, id: key.id }))
    return this.cluster.placement.setOf(group)
  }

  /** Milliseconds of simulated time. Rejects as the work does. */
  async timed(work: () => Promise<unknown>): Promise<number> {
    const { world } = this.cluster
    const startMicros = world.nowMicros
    let isDone = false
    const done = work().finally(() => (isDone = true))
    // The caller hears of the failure below, once the world stands still.
    done.catch(() => undefined)
    const ending = await world.run(() => isDone, world.nowMicros + patienceMicros)
    assert(ending === 'done', 'bench: an operation ends')
    const ms = (world.nowMicros - startMicros) / 1_000
    await done
    await world.run(() => false, world.nowMicros + restMicros)
    return ms
  }

  #db(region: number): Tables<typeof schema.tables> {
    return present(this.#dbs[region], 'bench: a region has a client')
  }
}

/** Nodes, clients, and nodes as clients of the other set. */
function buildWays(nodeCount: number): Readonly<Record<string, number>> {
  const places = buildSets(nodeCount, regionNames.length).flatMap((nodes, region) => [
    ...nodes.flatMap((node) => [node, outgoing(node, 1)].map((name) => ({ name, region }))),
    { name: clientName(region), region },
  ])
  const ways = places.flatMap((from) =>
    places.map((to): [string, number] => {
      return [`${from.name}>${to.name}`, from.region === to.region ? nearMicros : farMicros]
    }),
  )
  return Object.fromEntries(ways)
}

function openClient({ world, clientNetwork, sets }: SimCluster, region: number): Client {
  const process = new SimProcess(world, clientName(region))
  const random = world.random.fork(`client ${region}`)
  const clock = createClock(process, calmSkew, random.fork('clock'))
  const nodes = present(sets[region], 'bench: a region has a set')
  const transport = clientNetwork.attach(process, nodes)
  return new Client({ transport, clock, random })
}
