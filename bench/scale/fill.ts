/**
 * Filling a node for `bench scale`: through the client library, a transaction a group, many under way
 * at once. No shorter way leaves what the product itself would leave.
 *
 * A filled folder can be kept; a run measures on a copy of it, so that the next one finds it as it was.
 */
import { cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BenchError, forEachBelow, openClient, readReason } from '../common.ts'
import { placeNodes } from '../processes.ts'
import { Accounts, bodyChars } from './accounts.ts'
import { Site, type Size } from './site.ts'

/** Transactions under way: enough for a node's flushes to be full. */
const underWay = 256
/** How often the bench reports progress. */
const progressEvery = 500

/** A data folder that was filled, and how long that took. */
export interface Filled extends Size {
  readonly seconds: number
  readonly perSecond: number
  /** Of the data folder, when the node was stopped. */
  readonly diskBytes: number
}

export interface FillOptions {
  readonly signal: AbortSignal
  readonly onProgress: (groups: number, done: number) => void
}

/** The file in a kept folder that says that all of it is there. */
const doneName = 'filled.json'
/** `placeNodes` names the only node of a folder so. */
const nodeName = 'n1'

/** Fills `folder`, and gives the site in it, stopped. */
export async function fillSite(
  folder: string,
  size: Size,
  options: FillOptions,
): Promise<{ readonly site: Site; readonly filled: Filled }> {
  const site = await siteIn(folder, size)
  try {
    await site.start(options.signal)
    const seconds = await putAll(site, options)
    await site.settled()
    await site.stop()
    options.signal.throwIfAborted()
    const diskBytes = await bytesUnder(join(folder, nodeName))
    return { site, filled: { ...size, seconds, perSecond: size.groups / seconds, diskBytes } }
  } finally {
    await site.stop()
  }
}

async function siteIn(folder: string, size: Size): Promise<Site> {
  await mkdir(folder, { recursive: true })
  const [place] = await placeNodes(folder, 1)
  if (place === undefined) throw new Error('a cluster of one node has a node')
  return new Site(size, place)
}

/** Seconds until the last of them was committed. */
async function putAll({ url, size }: Site, { signal, onProgress }: FillOptions): Promise<number> {
  const { groups, rowsPerGroup } = size
  const client = await openClient([url], signal)
  try {
    const accounts = await Accounts.open(client)
    const began = performance.now()
    let done = 0
    await forEachBelow(groups, underWay, signal, async (n) => {
      await accounts.put(n, 0, rowsPerGroup)
      done += 1
      if (done % progressEvery === 0 || done === groups) onProgress(groups, done)
    })
    return (performance.now() - began) / 1000
  } finally {
    await client.close()
  }
}

/**
 * The same in `folder`, from what is kept in `kept`; filled there first when it is not there whole.
 * Rejects with a BenchError when `kept` cannot be used.
 */
export async function copySite(
  kept: string,
  folder: string,
  size: Size,
  options: FillOptions,
): Promise<{ readonly site: Site; readonly filled: Filled }> {
  const source = join(kept, nameSize(size))
  const filled = (await readFilled(source)) ?? (await keep(source, size, options))
  const site = await siteIn(folder, size)
  await cp(join(source, nodeName), join(folder, nodeName), { recursive: true })
  return { site, filled }
}

/** The folder of a size. */
export function nameSize({ groups, rowsPerGroup }: Size): string {
  return rowsPerGroup === 1 ? `groups-${groups}` : `groups-${groups}-of-${rowsPerGroup}`
}

async function keep(source: string, size: Size, options: FillOptions): Promise<Filled> {
  await makeEmpty(source).catch((error: unknown) => {
    throw new BenchError(`${source} cannot be made: ${readReason(error)}`)
  })
  try {
    const { filled } = await fillSite(source, size, options)
    const kept: Kept = { ...filled, bodyChars }
    await writeFile(join(source, doneName), JSON.stringify(kept))
    return filled
  } catch (error) {
    await rm(source, { recursive: true, force: true })
    throw error
  }
}

/** An interrupted run may have left something. */
async function makeEmpty(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
}

async function readFilled(source: string): Promise<Filled | undefined> {
  // Absent: nothing was kept, or not all of it.
  const text = await readFile(join(source, doneName), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const found = parsed(text)
  if (isKept(found)) {
    const { bodyChars: _, ...filled } = found
    return filled
  }
  throw new BenchError(`${source} was not filled by this version: remove it`)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Cut short, or another program's file: it says nothing.
    return undefined
  }
}

/** Rows of another size would cost something else. */
interface Kept extends Filled {
  readonly bodyChars: number
}

function isKept(found: unknown): found is Kept {
  return (
    typeof found === 'object' &&
    found !== null &&
    ['groups', 'rowsPerGroup', 'seconds', 'perSecond', 'diskBytes'].every(
      (name) => name in found,
    ) &&
    'bodyChars' in found &&
    found.bodyChars === bodyChars
  )
}

async function bytesUnder(folder: string): Promise<number> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = found.filter((one) => one.isFile())
  const sizes = await Promise.all(
    files.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}
