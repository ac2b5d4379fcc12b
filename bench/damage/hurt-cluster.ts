/** Three supervised nodes with many rows that look for damage often, under a load that recognises wrong values. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { present } from '../../src/base/assert.ts'
import { BenchError } from '../common.ts'
import { pause, placeNodes } from '../processes.ts'
import { CheckedLoad } from './checked-load.ts'
import { readSigns } from './node-signs.ts'
import { SupervisedNode } from './supervised-node.ts'

export interface ClusterOptions {
  readonly clients: number
  readonly rows: number
  /** Seconds from the end of one look for damage to the next one. */
  readonly round: number
  readonly logStore: 'leveldb' | 'files'
}

export const pollMs = 100
const readyWaitMs = 60_000
/** Beside a load a scrub reads an eighth of this, and is done in seconds. */
const scrubBytesPerSecond: number = 128 * 1024 * 1024

export class HurtCluster {
  readonly nodes: readonly SupervisedNode[]
  readonly load: CheckedLoad
  readonly #folder: string

  private constructor(folder: string, nodes: readonly SupervisedNode[], load: CheckedLoad) {
    this.#folder = folder
    this.nodes = nodes
    this.load = load
  }

  /** Resolves when all nodes are ready, with the rows in tables of their stores, and the load goes on. */
  static async start(options: ClusterOptions, signal: AbortSignal): Promise<HurtCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'trilithon-bench-'))
    const nodes: SupervisedNode[] = []
    let load: CheckedLoad | undefined
    try {
      const roundMs = Math.round(options.round * 1_000)
      const places = await placeNodes(folder, 3, [
        `log_store: ${options.logStore}`,
        `limits: { scrub_pause_ms: ${roundMs}, compare_ms: ${roundMs}, scrub_bytes_per_second: ${scrubBytesPerSecond} }`,
      ])
      nodes.push(...places.map((place) => new SupervisedNode(place)))
      for (const node of nodes) node.start()
      for (const node of nodes) await waitReady(node, signal)
      load = await CheckedLoad.open(places, signal)
      await load.fill(options.rows)
      for (const node of nodes) await restart(node, signal)
      load.start(options.clients, places)
      return new HurtCluster(folder, nodes, load)
    } catch (error) {
      await load?.stop()
      await removeNodes(folder, nodes)
      throw error
    }
  }

  node(nth: number): SupervisedNode {
    return present(this.nodes[nth], 'bench: there are three nodes')
  }

  folderOf({ place }: SupervisedNode): string {
    return join(this.#folder, place.id)
  }

  async close(): Promise<void> {
    await this.load.stop()
    await removeNodes(this.#folder, this.nodes)
  }
}

/** A start writes the rows of the journals to tables. */
export async function restart(node: SupervisedNode, signal: AbortSignal): Promise<void> {
  await node.stop('SIGTERM')
  node.start()
  await waitReady(node, signal)
}

async function removeNodes(folder: string, nodes: readonly SupervisedNode[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.stop('SIGKILL')))
  await rm(folder, { recursive: true, force: true })
}

async function waitReady(node: SupervisedNode, signal: AbortSignal): Promise<void> {
  const endMs = performance.now() + readyWaitMs
  while (performance.now() < endMs) {
    signal.throwIfAborted()
    if ((await readSigns(node.place))?.isReady === true) return node.onReady()
    await pause(pollMs)
  }
  const last = node.said.at(-1)?.text ?? 'it said nothing'
  throw new BenchError(`${node.place.id} was not ready within ${readyWaitMs} ms: ${last}`)
}
