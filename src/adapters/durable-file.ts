/** Small files that are written whole: after a loss of power each has its old content or its new one. */
import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncFolder } from './sync-folder.ts'

/** The name of a file while it is written. */
export function nameBegun(path: string): string {
  return `${path}.new`
}

/** Resolves when the text is durable under that name. Rejects with the error of the system. */
export async function writeDurably(path: string, text: string): Promise<void> {
  const begun = nameBegun(path)
  const file = await open(begun, 'w')
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(begun, path)
  await syncFolder(dirname(path))
}
