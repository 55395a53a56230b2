// Where the money went: usage by model, the tasks behind a bar, a statement with a line a task, and a key
// that has used up a cap.
import {ask, must} from '../browser.mjs'

export default async ({come, base, key}) => {
	const send = (path, headers = {}) => fetch(base + path, {headers: {Authorization: `Bearer ${key}`, ...headers}})
	const generate = async by => {
		const asked = await fetch(base + '/v1/images/generations', {
			method: 'POST', headers: {Authorization: `Bearer ${by}`, Prefer: 'wait'}, body: JSON.stringify({model: 'theta-image-turbo', prompt: 'a ledger'}),
		})
		must(asked.ok, `the submit: ${asked.status}`)
	}
	await generate(key)
	const v = await come()
	await v.signIn(key)
	await v.go('/usage')
	await v.sees('Group by')
	await v.choose('Model', 'theta-image-turbo')
	await v.holds(() => location.search.includes('model=theta-image-turbo') && document.querySelectorAll('.usage-usagepage table')[0].querySelectorAll('tbody tr').length === 2)
	await v.press('button', 'Show statement')
	await v.sees('Closing balance')
	await v.inspect('statement')
	await v.drawn('.usage-plot canvas')

	// On a phone no table scrolls sideways.
	await v.page.setViewport({width: 390, height: 844})
	await v.page.evaluate(() => { for (const d of document.querySelectorAll('.usage-usagepage details')) d.open = true })
	const wide = await v.page.evaluate(() => [...document.querySelectorAll('.usage-usagepage .scroll')].filter(t => t.scrollWidth > t.clientWidth).map(t => t.getAttribute('aria-label')))
	must(wide.length === 0, `${wide} scroll sideways`)
	await v.page.setViewport({width: 1440, height: 900})

	// A bar leads to its day's tasks of that model. The chart is drawn again after the window has changed.
	await v.holds(() => document.querySelector('.usage-plot .uplot').clientWidth === document.querySelector('.usage-plot').clientWidth)
	const bar = await v.page.evaluate(() => {
		const {right, bottom, width} = document.querySelector('.usage-plot .u-over').getBoundingClientRect()
		return {x: right - width / 60, y: bottom - 3}
	})
	await v.page.mouse.move(bar.x, bar.y)
	await v.page.mouse.click(bar.x, bar.y)
	await v.holds(() => location.pathname === '/console/tasks' && location.search.includes('model=theta-image-turbo') && location.search.includes('created_after='))
	await v.page.waitForSelector('a[href*="/console/tasks/task_"]')

	const file = await (await send('/v1/account/statement?by=task', {Accept: 'text/csv'})).text()
	const [head, ...lines] = file.trim().split('\r\n')
	must(head === 'at,kind,amount,balance,task,model,key,key_name,reference,id', head)
	const tasks = lines.map(line => line.split(',')[4]).filter(Boolean)
	must(tasks.length > 0 && new Set(tasks).size === tasks.length, 'a task has two lines')

	const {data: [{cost}]} = await (await send('/v1/tasks?model=theta-image-turbo&status=completed&limit=1')).json()
	const capped = await ask('key', {name: 'capped', unlimited: true, caps: {day: String(cost)}})
	await generate(capped.key)
	await v.press('button', 'Sign out')
	await v.holds(() => location.pathname.endsWith('/sign-in'))
	await v.signIn(capped.key)
	await v.sees('This key has used up its daily cap. It resets on')
	await v.leave()
}
