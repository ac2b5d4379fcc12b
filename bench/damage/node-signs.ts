/** The signs of damage, and of missing entries, in a node's status. */
import type { NodePlace } from '../processes.ts'

export interface Signs {
  readonly isReady: boolean
  /** Groups whose entries it lacks, as far as it knows. */
  readonly lacking: number
  /** Its data store was lost, and the others restore it. */
  readonly isRestoring: boolean
  /** Groups that are put aside now; those that were mended since its start. */
  readonly aside: number
  readonly mended: number
  /** Groups of which another node had other rows, and groups whose rows a count found wrong, since its start. */
  readonly differences: number
  readonly miscounts: number
  /** Of its log, since its start. */
  readonly logDamages: number
  /** Its data store was made anew since its start. */
  readonly isRebuilt: boolean
}

const statusWaitMs = 5_000

/** Undefined: the node does not answer. */
export async function readSigns({ url }: NodePlace): Promise<Signs | undefined> {
  const text = await fetch(`${url}/status`, { signal: AbortSignal.timeout(statusWaitMs) })
    .then((answer) => answer.text())
    .catch(() => undefined)
  if (text === undefined) return undefined
  const number = (name: string): number => Number(new RegExp(`"${name}":(\\d+)`).exec(text)?.[1])
  const signs = {
    isReady: text.includes('"ready":true'),
    isRestoring: !text.includes('"restoringFrom":[]'),
    isRebuilt: text.includes('data/ was damaged and has been rebuilt'),
    ...{ lacking: number('lackingGroups'), logDamages: number('logDamages') },
    ...{ aside: number('aside'), mended: number('mended'), differences: number('differences') },
    miscounts: number('rowScrubWrong'),
  }
  // A node that opens its stores has no figures of them yet.
  return Number.isNaN(signs.lacking) ? undefined : signs
}
