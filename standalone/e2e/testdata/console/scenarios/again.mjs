// What a task was asked for, wherever it is shown; the same again, and another one that begins
// with it; results side by side.
import {ask, must} from '../browser.mjs'

export default async ({come, base, key}) => {
	const {id: keyID, key: mine} = await ask('key', {name: 'robot', unlimited: true})
	const v = await come()
	v.expected.push(/400/) // a prompt that the sandbox refuses, and a task that is none
	await v.signIn(key)
	const submit = async (key, body) => (await (await fetch(`${base}/v1/images/generations`, {method: 'POST', headers: {Authorization: `Bearer ${key}`}, body: JSON.stringify({model: 'theta-image-turbo', ...body})})).json()).data[0].task_id
	const robots = await submit(mine, {prompt: 'a heron in the reeds [[sandbox: duration=1s]]', size: '16:9', metadata: {reference: 'order 7'}})
	const failing = await submit(mine, {prompt: 'a storm [[sandbox: fail=moderation]]'})

	// The list: prompt, duration, reason and key.
	await v.go('/tasks')
	await v.sees('a heron in the reeds')
	await v.sees('Content rejected')
	await v.sees('robot …')
	await v.holds(id => [...document.querySelectorAll('.tasks-tasklist tr')].some(row => row.querySelector(`a[href$="${id}"]`) && /\d s/.test(row.cells[3].innerText)), robots)
	await v.inspect('list-of-requests')
	await v.choose('API key', keyID)
	await v.holds(() => document.querySelectorAll('.tasks-tasklist tbody tr').length === 2)
	await v.fill('searchbox', 'Task ID or reference', 'order 7')
	await v.holds(() => document.querySelectorAll('.tasks-tasklist tbody tr').length === 1)
	await v.go('/tasks?view=gallery')
	await v.sees('a heron in the reeds')
	await v.inspect('gallery-of-requests')
	await v.fill('searchbox', 'Task ID or reference', robots)
	await v.holds(id => location.pathname === `/console/tasks/${id}`, robots)

	// The page of the task: its request, its key, and the request as code.
	await v.holds(() => document.querySelector('.task-asked')?.innerText.includes('a heron in the reeds'))
	await v.holds(() => /Size\s+16:9/.test(document.querySelector('.task-asked').innerText))
	await v.sees('robot …')
	await v.at('button', 'Copy as code', '.task-asked')
	await v.inspect('task-with-request')
	await v.press('button', 'Run again')
	await v.holds(id => location.pathname.startsWith('/console/tasks/') && !location.pathname.endsWith(id), robots)
	await v.sees('Completed')

	// Vary, from the list of all: the form has the request, and two results stand side by side.
	await v.go('/tasks')
	await v.press('link', `Vary: ${robots}`)
	await v.holds(() => document.querySelector('#root_prompt')?.value.startsWith('a heron in the reeds'))
	await v.fill('textbox', 'Prompt', 'a heron at night [[sandbox: duration=20s]]')
	await v.press('button', 'Generate')
	await v.holds(() => document.querySelectorAll('.playground-results .task').length === 2)
	await v.holds(() => document.title.startsWith('Running'))
	await v.press('button', 'Cancel')
	await v.press('button', 'Cancel the task')
	await v.sees('Cancelled')
	await v.press('button', 'Run again', '.playground-results > :last-child')
	await v.holds(() => document.querySelectorAll('.playground-results .task').length === 3)
	await v.holds(() => document.title.startsWith('Done'))
	await v.press('button', 'Vary', '.playground-results > :last-child')
	await v.holds(() => document.querySelector('#root_prompt').value.startsWith('a heron in the reeds'))
	await v.inspect('side-by-side')
	await v.page.reload()
	await v.holds(() => document.querySelectorAll('.playground-results .task').length === 3)
	const shown = await v.page.evaluate(() => document.querySelectorAll('.playground-strip button').length)
	must(shown > 0, 'there is no strip of earlier results')
	await v.click('.playground-strip button')
	await v.holds(() => document.querySelectorAll('.playground-results .task').length === 4)
	await v.holds(() => [...document.querySelectorAll('.playground-results .task img')].some(i => i.naturalWidth > 0))
	await v.seesNot(failing)
	await v.leave()
}
