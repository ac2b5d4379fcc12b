/**
 * The segments of a folder before their frames are read: whether all of them are there, and are of one journal.
 * Nothing is written to a folder that is refused.
 */
import { StoreError } from '../base/errors.ts'
import type { SegmentFile, SegmentFolder } from '../ports/segments.ts'
import {
  decodeHeader,
  headerBytes,
  headerCrc,
  segmentFormat,
  type SegmentHeader,
} from './segment-format.ts'
import { firstFrameOf, type SegmentBounds } from './segment-scan.ts'
import { damagedError } from './segment-errors.ts'
import { firstFileName, segmentName, sequenceOf, spareNumber } from './segment-stock.ts'
import { SegmentWindow } from './segment-window.ts'

export interface SegmentHead {
  readonly file: SegmentFile
  readonly sequence: number
  /** Undefined: damaged. Its first frame then says what is needed of it. */
  readonly header: SegmentHeader | undefined
  readonly salt: string
  readonly firstNumber: number
  readonly headerCrc: number | undefined
}

export interface FolderNames {
  /** In order, without a gap. */
  readonly sequences: readonly number[]
  readonly spares: readonly string[]
  /** A file that was to become the first segment, and did not. */
  readonly hasFirstFile: boolean
}

/** Rejects with `corrupt` where files are missing, with `invalid` where something else has the name of one. */
export async function namesIn(folder: SegmentFolder): Promise<FolderNames> {
  const entries = await folder.list()
  const isOurs = (name: string): boolean =>
    sequenceOf(name) !== undefined || spareNumber(name) !== undefined || name === firstFileName
  const ours = entries.filter(({ name }) => isOurs(name))
  const strange = ours.find(({ isFile }) => !isFile)
  if (strange !== undefined) {
    const message = `${strange.name} in the journal ${folder.path} is a folder, a pipe, a link or a device, where a file belongs; move it away`
    throw new StoreError('invalid', message)
  }
  const names = ours.map(({ name }) => name)
  const sequences = names
    .flatMap((name) => sequenceOf(name) ?? [])
    .toSorted((one, other) => one - other)
  const spares = names.filter((name) => spareNumber(name) !== undefined).toSorted()
  const missing = missingIn(sequences)
  if (missing !== undefined) {
    throw damagedError(folder.path, `${segmentName(missing)} is missing`)
  }
  if (sequences.length === 0 && spares.length > 0) {
    throw damagedError(folder.path, 'its segments are missing, and spare files of them are there')
  }
  return { sequences, spares, hasFirstFile: names.includes(firstFileName) }
}

function missingIn(sequences: readonly number[]): number | undefined {
  const [first = 1] = sequences
  const at = sequences.findIndex((sequence, index) => sequence !== first + index)
  return at < 0 ? undefined : first + at
}

export async function readHead(
  path: string,
  file: SegmentFile,
  sequence: number,
): Promise<SegmentHead> {
  const window = new SegmentWindow(file)
  const bytes = Uint8Array.from(await window.at(0, headerBytes))
  const header = decodeHeader(bytes)
  if (header !== undefined) {
    refuseStranger(path, file, header, sequence)
    const { salt, firstNumber } = header
    return { file, sequence, header, salt, firstNumber, headerCrc: headerCrc(bytes) }
  }
  const first = await firstFrameOf(window)
  if (first?.sequence !== sequence) {
    throw damagedError(path, `${file.name} is no segment of a journal, or its beginning is lost`)
  }
  const { salt, number: firstNumber } = first
  return { file, sequence, header, salt, firstNumber, headerCrc: undefined }
}

function refuseStranger(
  path: string,
  file: SegmentFile,
  header: SegmentHeader,
  sequence: number,
): void {
  if (header.format !== segmentFormat) {
    const message = `${file.name} in the journal ${path} has format ${header.format}; this version reads format ${segmentFormat}: start the version that wrote it`
    throw new StoreError('invalid', message)
  }
  if (header.sequence !== sequence) {
    const what = `${file.name} was written as ${segmentName(header.sequence)}, and has been renamed or copied`
    throw damagedError(path, what)
  }
}

/** The journal that the segments are of; undefined: no header is sound, or there are no segments. */
export function readJournalId(path: string, heads: readonly SegmentHead[]): string | undefined {
  const sound = heads.filter(({ header }) => header !== undefined)
  const journal = sound.at(-1)?.header?.journal
  const foreign = sound.find(({ header }) => header?.journal !== journal)
  if (foreign === undefined) return journal
  throw damagedError(path, `${foreign.file.name} is of another journal than the last segment`)
}

/** The bounds that the headers of a segment and of the next one set its frames. */
export function boundsFrom(head: SegmentHead, next: SegmentHead | undefined): SegmentBounds {
  return {
    salt: head.salt,
    sequence: head.sequence,
    firstNumber: head.firstNumber,
    firstCrc: head.headerCrc,
    numberMax: next?.firstNumber ?? Infinity,
    end: next?.header?.previousEnd,
    endCrc: next?.header?.previousCrc,
  }
}
