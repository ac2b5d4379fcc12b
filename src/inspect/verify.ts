/**
 * Whether the stores of a stopped node hold what was written: every byte of both is read, and nothing is written. First
 * the files, then the flushes, then the rows, each against its checksums and against the others. Memory holds no more
 * for a large store than for a small one, but for the list of its tables.
 */
import type { LevelView } from '../adapters/level-view.ts'
import type { FlushMark } from '../log/settled.ts'
import { DataLooks } from './data-looks.ts'
import type { Finding, Findings, NameGroup } from './finding.ts'
import { decodeHeader } from './flush-pass.ts'
import type { StoppedNode } from './stopped-node.ts'
import { checkRows, type DataCheckParts } from './verify-data.ts'
import { checkFlushes, checkRecords, type LogFigures } from './verify-log.ts'
import { ChainCheck } from './verify-chain.ts'
import { VerifyWork, type WorkOptions } from './verify-work.ts'

export interface VerifyOptions extends WorkOptions {
  readonly nameGroup: NameGroup
}

export interface Verdict {
  readonly node: string | undefined
  readonly cluster: string | undefined
  readonly storeId: string | undefined
  readonly log: LogFigures & { readonly fileBytes: number }
  readonly data: {
    readonly rows: number
    readonly fileBytes: number
    /** The last flush whose records are all in rows; absent: the next start folds the whole log. */
    readonly mark?: number
  }
  /** All; `findings` has the first of them. */
  readonly damages: number
  readonly findings: readonly Finding[]
  /** Facts that are no damage, and worth knowing. */
  readonly notes: readonly string[]
}

/** `findings` has what the opening found, and gets what the reads find. */
export async function verify(
  node: StoppedNode,
  findings: Findings,
  options: VerifyOptions,
): Promise<Verdict> {
  const { log, data, fileBytes, isReadable } = node
  const { nameGroup } = options
  const work = new VerifyWork(options, findings, fileBytes.log + fileBytes.data)
  for (const store of ['log', 'data'] as const) {
    await work.filesOf(store, fileBytes[store], (pace) => node.checkFiles(store, pace))
  }
  const meta = isReadable.log ? checkRecords({ log }, findings) : undefined
  const looks = looksAt(node)
  const mark = looks && readMark(looks, findings)
  const through = mark?.number ?? 0
  const chain = new ChainCheck(findings, nameGroup)
  const figures = await checkFlushes(
    {
      ...{ log, findings, nameGroup, onFlush: (header) => chain.take(header) },
      onBytes: work.contentsOf('log', fileBytes.log),
    },
    meta,
  )
  // Of a log that cannot be read at all nothing more is to be said.
  const last = isReadable.log ? figures.last : Number.MAX_SAFE_INTEGER
  checkMark(node, mark, figures, findings)
  checkKept(node, mark, meta?.firstFlush, findings)
  if (looks !== undefined && through <= last) chain.compare(looks, through)
  const onBytes = work.contentsOf('data', fileBytes.data)
  const rows = await rowsChecked(data, looks, {
    ...{ findings, nameGroup, log: { last, mark: through }, onBytes },
  })
  const { node: name, cluster, storeId } = meta ?? {}
  return {
    ...{ node: name, cluster, storeId },
    log: { ...figures, fileBytes: fileBytes.log },
    data: { rows, fileBytes: fileBytes.data, ...(mark !== undefined && { mark: mark.number }) },
    damages: findings.count,
    findings: findings.list,
    notes: listNotes(node, mark, figures.flushes, meta?.firstFlush),
  }
}

function looksAt({ data, isReadable }: StoppedNode): DataLooks | undefined {
  return data !== undefined && isReadable.data ? new DataLooks(data) : undefined
}

async function rowsChecked(
  data: LevelView | undefined,
  looks: DataLooks | undefined,
  parts: Omit<DataCheckParts, 'data' | 'looks'>,
): Promise<number> {
  return data === undefined || looks === undefined ? 0 : checkRows({ data, looks, ...parts })
}

function readMark(looks: DataLooks, findings: Findings): FlushMark | undefined {
  const mark = looks.mark()
  if (mark !== 'damaged') return mark
  findings.add('data', 'the mark in data/ cannot be understood')
  return undefined
}

function listNotes(
  node: StoppedNode,
  mark: FlushMark | undefined,
  flushes: number,
  firstFlush = 1,
): readonly string[] {
  const { data, isReadable, asides } = node
  const notes = asides.map((name) => `${name}/ holds what an earlier start found damaged`)
  if (firstFlush > 1) {
    notes.push(
      `the log has given up the flushes before ${firstFlush}: what they said stands in data/ alone`,
    )
  } else if (data === undefined) {
    notes.push('there is no data/: the next start makes it out of the log')
  }
  if (isReadable.data && mark === undefined && flushes > 0) {
    notes.push('data/ does not say which flushes it has taken in: the next start reads all of them')
  }
  return notes
}

/** LOG-16: what the log has given up is in the data store. */
function checkKept(
  { data, isReadable }: StoppedNode,
  mark: FlushMark | undefined,
  firstFlush = 1,
  findings: Findings,
): void {
  const isKept = mark !== undefined && mark.number >= firstFlush
  if (firstFlush === 1 || isKept || (data !== undefined && !isReadable.data)) return
  const has = data === undefined ? 'there is no data/' : 'data/ does not hold what they said'
  const text = `the log has given up the flushes before ${firstFlush}, and ${has}: put the data/ of before back`
  findings.add('data', text)
}

/** LOG-6: what the data store has taken in is in the log. */
function checkMark(
  { log, isReadable }: StoppedNode,
  mark: FlushMark | undefined,
  { first, last }: LogFigures,
  findings: Findings,
): void {
  if (mark === undefined || !isReadable.log) return
  const { number, crc } = mark
  if (number > last || number < first) {
    const text = `data/ has taken in flush ${number}, and the log has flushes ${first} to ${last}`
    return findings.add('log', text, { flush: number })
  }
  const bytes = log.read(number)
  const header = bytes && decodeHeader(bytes)
  // The pass over the flushes has reported one that is damaged in itself.
  if (header === undefined || header.crc === crc) return
  const text = `flush ${number} in the log is another one than data/ has taken in`
  findings.add('log', text, { flush: number })
}
