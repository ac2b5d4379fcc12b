/** Whether two paths are one file, by whatever names: links of either kind, other ways to the same folder. */
import { stat } from 'node:fs/promises'

/** False where there is no plain file. */
export async function isSameFile(a: string, b: string): Promise<boolean> {
  const [one, other] = await Promise.all([fileAt(a), fileAt(b)])
  return one !== undefined && one === other
}

async function fileAt(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined)
  return found?.isFile() === true ? `${found.dev}/${found.ino}` : undefined
}
