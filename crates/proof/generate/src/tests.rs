mod compare;
mod faulty;
mod passes;
mod programs;
