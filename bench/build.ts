/** Of which sources a report is: rates of two builds are no rates of two machines. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

export interface Build {
  /** Git's name for the commit. */
  readonly revision: string
  /** Files that git knows of were other than there. */
  readonly isChanged: boolean
}

/** A report with its build; absent where there is no git to tell it. */
export type Stamped<Report> = Report & { readonly build?: Build }

/** A file of these sources. Where they lie in another project's repository, git tells of that one. */
const ownFile = 'bench/main.ts'

/** Of the sources that `folder` is in, as they are now. */
export async function buildIn(folder: string): Promise<Build | undefined> {
  try {
    const [top = '', revision = ''] = await git(folder, ['rev-parse', '--show-toplevel', 'HEAD'])
    await git(top, ['cat-file', '-e', `${revision}:${ownFile}`])
    // Not what is new: reports that are written beside the sources would be changes of them.
    const changed = await git(top, ['status', '--porcelain', '--untracked-files=no'])
    return { revision, isChanged: changed.length > 0 }
  } catch {
    // No git, no repository, or another one.
    return undefined
  }
}

async function git(folder: string, args: readonly string[]): Promise<string[]> {
  const { stdout } = await promisify(execFile)('git', ['-C', folder, ...args])
  return stdout.split('\n').filter((line) => line !== '')
}

export function stampedWith<Report extends object>(
  build: Build | undefined,
  report: Report,
): Stamped<Report> {
  return build === undefined ? report : { ...report, build }
}

export function describeBuild({ revision, isChanged }: Build): string {
  return `revision ${revision.slice(0, 12)}${isChanged ? ', changed since' : ''}`
}
