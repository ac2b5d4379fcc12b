/** Rounds of deletions as status has them: how far each is, and why its bytes are still there. */
import type { LogStore } from '../log/log-store.ts'
import type { LogEnding } from '../peers/log-ending.ts'
import type { EraseHeld } from '../ports/storage.ts'
import type { EraseRound } from '../store/erase-book.ts'

/** Where a round is: it gathers deletions, or its bytes stand in history, in the log, in files of the data store. */
export type EraseStage = 'gathering' | 'history' | 'log' | 'data'

/** A round, as status has it. Moments are milliseconds since 1970. */
export interface EraseRequest {
  readonly round: number
  readonly stage: EraseStage
  /** When its first deletion was taken in here. */
  readonly since: number
  /** When it is to be done. */
  readonly deadline: number
  /** How many groups it is of; absent: of all, since they are too many to be named. */
  readonly groups?: number
  /** Why its bytes are still there, in words. */
  readonly why: readonly string[]
}

export interface EraseFigures {
  /** The node has started, and may lack deletions that its peers took in meanwhile. */
  readonly isBehind: boolean
  /** The older one first. */
  readonly requests: readonly EraseRequest[]
  /** How old the oldest one is, in milliseconds; 0: there is none. */
  readonly oldestMs: number
  /** Those behind their deadline. */
  readonly overdue: number
  /** Rounds that were erased since the start. */
  readonly done: number
}

/** How far the node is with the closed round. */
export interface EraseProgress {
  /** How long a round may take, in milliseconds. */
  readonly withinMs: number
  /** No round is closed: the one that gathers is the next to be erased. */
  readonly isNext: boolean
  readonly stage: EraseStage
  /** Groups of the round with versions of before it. */
  readonly groupsLeft: number
  /** A group of the round cannot be read before a peer has mended it. */
  readonly isGroupDamaged: boolean
  /** Why the data store has not rewritten its files. */
  readonly held: EraseHeld | undefined
  /** The log has no flush of before the round, and no file with one. */
  readonly isErasedLog: boolean
  /** The first flush after the round. */
  readonly firstFlush: number
  readonly log: Pick<LogStore, 'firstFlush' | 'settledFlush'>
  readonly ending: Pick<LogEnding, 'peers'>
}

/** LevelDB compacts only on request. The next pass looks again at the cause that holds it up. */
const heldWords: Readonly<Record<EraseHeld, string>> = {
  'files-in-use': 'data/: a scan still reads files that are rewritten',
  unchecked: 'data/unchecked: the scrub has not read all tables of before the start',
}

export function describeRound(round: EraseRound, progress: EraseProgress): EraseRequest {
  const { number, openedAtMs: since, closedAtMs, isAll, groups } = round
  const stage = closedAtMs === 0 ? 'gathering' : progress.stage
  return {
    ...{ round: number, stage, since, deadline: since + progress.withinMs },
    ...(isAll ? {} : { groups: groups.size }),
    why: stage === 'gathering' ? [gatheringWords(progress)] : reasons(stage, progress),
  }
}

/** The round that the next batch of the data store begins. */
export function describeWaiting(
  round: { readonly number: number; readonly openedAtMs: number; readonly groups: number },
  withinMs: number,
): EraseRequest {
  const { number, openedAtMs: since, groups } = round
  const why = [
    'data/: deletions wait for a checkpoint (checkpoint_ms), and are in memory and in log/',
  ]
  return { round: number, stage: 'gathering', since, deadline: since + withinMs, groups, why }
}

function gatheringWords({ isNext }: EraseProgress): string {
  return isNext
    ? 'deletions gather for a quarter of erase_within_ms, and are erased together'
    : 'deletions gather until those before are erased'
}

function reasons(
  stage: Exclude<EraseStage, 'gathering'>,
  progress: EraseProgress,
): readonly string[] {
  const { held, groupsLeft: left, isGroupDamaged } = progress
  if (stage === 'data') return [held === undefined ? 'data/: files are rewritten' : heldWords[held]]
  const versions = left === 1 ? '1 group keeps versions' : `${left} groups keep versions`
  const history = left > 0 ? [`history: ${versions} that readers may see`] : []
  const damaged = isGroupDamaged
    ? ['data/: the rows of a group are wrong, until a peer has mended it']
    : []
  return [...damaged, ...history, ...logReasons(progress)]
}

function logReasons({ isErasedLog, firstFlush, log, ending }: EraseProgress): readonly string[] {
  const through = firstFlush - 1
  if (isErasedLog) return []
  if (log.firstFlush > through) return ['log/: files are rewritten']
  const peers = [...ending.peers()]
    .filter(([, { mark = 0 }]) => mark < through)
    .map(([peer, { mark }]) =>
      mark === undefined
        ? `log/: node ${peer} has not told its mark`
        : `log/: node ${peer} needs the flushes after ${mark}; those through ${through} are to go`,
    )
  const isOwn = log.settledFlush <= through
  return [
    ...(isOwn ? ['log/: this node has not applied all that these flushes name'] : []),
    ...peers,
  ]
}
