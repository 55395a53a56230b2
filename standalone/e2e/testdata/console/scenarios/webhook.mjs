// The account's webhook: an address is tried and kept, a task that names none calls it, and
// it is taken away. A key that refuses misspelt fields.
import {once} from 'node:events'
import {createServer} from 'node:http'
import {must} from '../browser.mjs'

export default async ({come, base, key}) => {
	const called = []
	const hooks = createServer((request, response) => {
		called.push(request.headers['webhook-id'])
		request.resume()
		response.writeHead(204).end()
	}).listen(0, '127.0.0.1')
	await once(hooks, 'listening')
	const v = await come()
	v.expected.push(/400/) // an address that is none
	await v.signIn(key)
	await v.go('/account')
	await v.fill('textbox', 'URL', 'ftp://example.com/hooks')
	await v.press('button', 'Save')
	await v.sees('webhook is not an address for callbacks')
	await v.fill('textbox', 'URL', `http://127.0.0.1:${hooks.address().port}/hooks`)
	await v.press('button', 'Send test')
	await v.sees('Test succeeded')
	must(called[0] === 'task_00000000000000000000000000', `the test came as ${called}`)
	await v.press('button', 'Save')
	await v.holds(() => [...document.querySelectorAll('button[type=submit]')].find(b => b.innerText === 'Save')?.disabled)
	await v.inspect('webhook')
	const submit = (key, body) => fetch(`${base}/v1/images/generations`, {method: 'POST', headers: {Authorization: `Bearer ${key}`}, body: JSON.stringify(body)})
	const task = (await (await submit(key, {model: 'theta-image-turbo', prompt: 'a lighthouse'})).json()).data[0].task_id
	for (const end = Date.now() + 60_000; !called.includes(task);) {
		must(Date.now() < end, `${task} called nobody: ${called}`)
		await new Promise((resolve) => setTimeout(resolve, 100))
	}
	await v.go('/account')
	const shown = (state) => v.holds((id, state) => [...document.querySelectorAll('li.account-callback')].some(li => li.innerText.includes(id) && li.querySelector('.badge').innerText === state), task, state)
	await shown('Delivered')
	await v.choose('State', 'delivered')
	await shown('Delivered')
	await v.choose('State', 'abandoned')
	await v.sees('No callbacks')
	await v.seesNot(task)

	// A callback whose address may not be called is a warning, in the list and at its task.
	const dropped = (await (await submit(key, {model: 'theta-image-turbo', prompt: 'a wall', webhook: 'http://10.0.0.1/hooks'})).json()).data[0].task_id
	const isWarning = id => [...document.querySelectorAll(id ? 'li.account-callback' : '#callback + span')].some(e => e.innerText.includes(id) && e.querySelector('.badge.warn')?.innerText === 'Not sent')
	await v.go('/account')
	await v.holds(isWarning, dropped)
	await v.go(`/tasks/${dropped}`)
	await v.holds(isWarning, '')
	await v.go('/account')

	await v.fill('textbox', 'URL', '')
	await v.press('button', 'Save')
	await v.holds(() => [...document.querySelectorAll('button[type=submit]')].find(b => b.innerText === 'Save')?.disabled)

	await v.press('link', 'Keys')
	await v.press('button', 'Create key')
	await v.fill('textbox', 'Name', 'strict')
	await v.page.evaluate(() => [...document.querySelectorAll('dialog[open] label')].find(l => l.innerText.startsWith('Limited to')).click())
	await v.fill('textbox', 'Quota in USD', '50')
	await v.press('checkbox', 'Reject unknown fields')
	await v.page.evaluate(() => [...document.querySelectorAll('dialog[open] button[type=submit]')].at(-1).click())
	const strict = await v.holds(() => /mgk_[0-9A-Za-z]{38}/.exec(document.querySelector('dialog[open]')?.innerText ?? '')?.[0])
	const refused = await (await submit(strict, {model: 'theta-image-turbo', prompt: 'a', sizes: '4:3'})).json()
	must(refused.error?.reason === 'unknown_field', JSON.stringify(refused))
	await v.leave()
	hooks.close()
}
