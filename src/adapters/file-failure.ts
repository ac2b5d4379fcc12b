/** A system error in words; the code stays, for readers who want to look it up. */
export function fileFailure(error: unknown): string {
  const code = readErrorCode(error)
  if (Object.hasOwn(words, code)) return `${words[code]} (${code})`
  return error instanceof Error ? error.message : String(error)
}

const words: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EEXIST: 'a file of this name is there',
  EACCES: 'permission denied',
  EPERM: 'not permitted',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is a file, not a folder',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'it would be larger than files may be',
  EIO: 'the device failed',
  ELOOP: 'its links go round in a circle',
  ENAMETOOLONG: 'its name is too long',
  EMFILE: 'too many files are open',
  ENXIO: 'there is nothing behind it',
  ETXTBSY: 'it is a program that runs',
}

/** Whether the system refused something about a file, which is no bug of this program. */
export function isFileFailure(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && Object.hasOwn(words, readErrorCode(error))
}

function readErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
