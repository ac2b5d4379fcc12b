/**
 * LevelDB's errors, each as one sentence that says what to do. LevelDB has no codes for most of them: this
 * module alone looks at its words, and never at the path among them.
 */
import { StoreError } from '../base/errors.ts'

interface Saying {
  /** LevelDB's own words, with the reasons behind it. */
  readonly text: string
  /** The same without the path: a folder may be called anything. */
  readonly bare: string
}

const causesMax = 4

function collectMessages(path: string, error: unknown): Saying {
  const parts: string[] = []
  for (let at = error; at instanceof Error && parts.length < causesMax; at = at.cause) {
    const code = 'code' in at && typeof at.code === 'string' ? `${at.code}: ` : ''
    parts.push(`${code}${at.message}`)
  }
  const text = parts.join(' / ')
  return { text, bare: text.replaceAll(path, '') }
}

/** A table that is shorter than its footer is an "invalid argument" to LevelDB. */
function isDamage({ bare }: Saying): boolean {
  return /corruption|not an sstable|bad block|missing files|invalid argument/i.test(bare)
}

function isFull({ bare }: Saying): boolean {
  return /no space left|ENOSPC|disk quota|EDQUOT/i.test(bare)
}

export function openError(path: string, error: unknown): StoreError {
  const said = collectMessages(path, error)
  const options = { cause: error }
  if (said.bare.includes('LEVEL_LOCKED')) {
    const message = `the data folder ${path} is in use by another process; stop that process, or name another folder`
    return new StoreError('unavailable', message, {}, options)
  }
  if (isFull(said)) {
    const message = `the store ${path} cannot be opened: the disk is full; make room and start the node again`
    return new StoreError('unavailable', message, {}, options)
  }
  if (/permission denied|read-only file system|EACCES|EPERM|EROFS/i.test(said.bare)) {
    const message = `the data folder ${path} cannot be written (${said.text}); make it writable, or name another folder`
    return new StoreError('forbidden', message, {}, options)
  }
  if (/EEXIST|ENOTDIR/.test(said.bare)) {
    const message = `the data folder ${path} is a file, or lies below one; name another folder`
    return new StoreError('invalid', message, {}, options)
  }
  // A file that one of LevelDB's own files names is not there, or is something else.
  const isTorn = /IO error: .*(?:no such file|is a directory)/i.test(said.bare)
  if (isTorn || isDamage(said)) return damageError(path, said.text, options)
  return new StoreError('unavailable', `cannot open the store ${path}: ${said.text}`, {}, options)
}

export function damageError(
  path: string,
  text: string,
  options?: { readonly cause: unknown },
): StoreError {
  const message = `the store ${path} is damaged (${text}); keep the folder for inspection`
  return new StoreError('corrupt', message, {}, options)
}

export function rootlessError(path: string): StoreError {
  return damageError(path, 'its file CURRENT is missing')
}

export function readError(path: string, error: unknown): StoreError {
  const said = collectMessages(path, error)
  if (isDamage(said)) return damageError(path, said.text, { cause: error })
  const message = `cannot read the store ${path}: ${said.text}`
  return new StoreError('unavailable', message, {}, { cause: error })
}

export function writeError(path: string, error: unknown): StoreError {
  const said = collectMessages(path, error)
  const options = { cause: error }
  if (isDamage(said)) {
    // It merges its tables beside the writes: a start meets the same ones again.
    const message = `the store ${path} is damaged, and takes no write any more (${said.text}); keep the folder for inspection`
    return new StoreError('corrupt', message, {}, options)
  }
  const advice = isFull(said)
    ? 'the disk is full: make room and start the node again'
    : 'nothing more is written to it: check the disk and start the node again'
  const message = `a write to ${path} failed (${said.text}); ${advice}`
  return new StoreError('unavailable', message, {}, options)
}

export function closedError(path: string): StoreError {
  return new StoreError('closed', `the store ${path} is closed`)
}
