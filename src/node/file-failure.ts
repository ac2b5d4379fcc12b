/** A system error in words; the code stays, for whoever wants to look it up. */
export function fileFailure(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const words: Readonly<Record<string, string>> = {
    ENOENT: 'there is no such file',
    EACCES: 'permission denied',
    EPERM: 'not permitted',
    EISDIR: 'it is a folder',
    ENOTDIR: 'a part of its path is a file, not a folder',
    EROFS: 'the file system is read-only',
    ENOSPC: 'the disk is full',
  }
  if (Object.hasOwn(words, code)) return `${words[code]} (${code})`
  return error instanceof Error ? error.message : String(error)
}
