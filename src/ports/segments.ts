/**
 * A folder of files whose length is fixed when they are made: the disk as the journal of segment files sees it.
 * The real folder and the simulated one run the same journal.
 *
 * Errors: bytes that the disk cannot give back reject with `corrupt`, all else that it refuses with `unavailable`
 * or `forbidden`. The caller waits for each call on a file or a name before it makes the next one there.
 */

/** A file of a journal has such a name; a folder with one is a journal of segment files. */
export const segmentEnding = '.segment'

export interface SegmentEntry {
  readonly name: string
  /** False: a folder, a pipe, a link or a device. */
  readonly isFile: boolean
}

export interface SegmentFile {
  readonly name: string
  /** In bytes. */
  readonly length: number
  /** The bytes from `offset` on in memory of the caller's own; fewer where the file ends. */
  readSync(offset: number, length: number): Uint8Array
  /** The same without holding the event loop. */
  read(offset: number, length: number): Promise<Uint8Array>
  /**
   * Writes `parts` one behind the other within the length of the file, and resolves when they are durable. The caller
   * does not change them before. It may hold the event loop for as long as a short write takes.
   */
  write(parts: readonly Uint8Array[], offset: number): Promise<void>
  close(): Promise<void>
}

export interface SegmentFolder {
  /** For error texts. */
  readonly path: string
  list(): Promise<readonly SegmentEntry[]>
  /** A file of zeros that stays `length` bytes long; it and its name are durable. There is none of this name. */
  create(name: string, length: number): Promise<SegmentFile>
  open(name: string): Promise<SegmentFile>
  /** Durable once it resolves; before, a crash leaves the one name or the other. Gives the file under its new name. */
  rename(file: SegmentFile, name: string): Promise<SegmentFile>
  /** Durable once it resolves; before, a crash may bring the file back. */
  remove(name: string): Promise<void>
  /** Resolves `ms` milliseconds later: a check goes slowly beside the work of others. */
  pause(ms: number): Promise<void>
}
