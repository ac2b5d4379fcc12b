/** Makes the names in a folder durable: those of files that were made, renamed or removed in it. */
import { open } from 'node:fs/promises'

/** Rejects with the error of the system. */
export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
